"""Prints the result: tables on the terminal and in the docs, and a plot."""

from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markdown import Markdown

from bench.measure import Shape
from bench.peers.contest import CALLERS, SIZES, column
from bench.peers.results import AS_BEFORE, NOW, OURS, Result

_DOCS = Path(__file__).parents[2] / "docs"
PAGE = _DOCS / "performance.md"
PLOT = _DOCS / "peers.png"
BEGIN, END = "<!-- peers: written by make bench -->\n", "<!-- end of peers -->\n"

Row = list[str]

_DEEP = (
    ("hardly any", "empty p99 ms"),
    ("waiting", "waiting p99 ms"),
    ("beside", "beside waiting p99 ms"),
    ("how many", "waiting"),
    ("passed", "passed p99 ms"),
    ("beside", "beside passed p99 ms"),
    ("how many", "passed"),
    ("memory MB", "resident MB"),
)
"""Columns of the table of deep queues, and the figures in them."""


def show(result: Result) -> None:
    Console().print(Markdown(render(result)))


def write_page(result: Result) -> None:
    """Replace the tables and the plot with the newest ones."""
    text = PAGE.read_text()
    head, rest = text.split(BEGIN)
    _, tail = rest.split(END)
    PAGE.write_text(head + BEGIN + render(result) + END + tail)
    plot(result, PLOT)


def render(result: Result) -> str:
    parts = [
        f"Taken {result.taken_at} with `{result.command}`; "
        + ", ".join(f"{name} {value}" for name, value in result.machine.items())
        + ".",
        _table(["", "version", "Python client", "synced", "notes"], _contenders(result)),
        *(f"Not measured: {peer}, because {reason}." for peer, reason in result.left_out.items()),
    ]
    for size in SIZES:
        parts += [
            f"Items of {size:,} B, thousands a second (lowest to highest round):",
            _table(["", *_rate_names(), "sustained"], _rates(result, size)),
        ]
    sustained = [f"{size:,} B {name}" for size in SIZES for name in ("p50 ms", "p99 ms")]
    parts += [
        "Sustained, from the add to the worker, with at most 1,000 items waiting:",
        _table(["", *sustained], _latencies(result)),
        "Deep, 100 B: p99 of a poll of one item in ms, when 2,000 items wait, when millions do, "
        "and after those have passed; *beside* is another queue, in which 2,000 items wait, polled "
        "in turn:",
        _table(["", *(name for name, _ in _DEEP)], _deep(result)),
        "Memory after a sustained run, and bytes written to disk for an item's whole life:",
        _table(["", *(f"{s:,} B {n}" for s in SIZES for n in ("MB", "B/item"))], _costs(result)),
    ]
    return "\n\n".join(part.rstrip("\n") for part in parts) + "\n"


def _table(head: Row, rows: list[Row]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _name(peer: str) -> str:
    return f"**{peer}**" if peer == OURS else peer


def _contenders(result: Result) -> list[Row]:
    return [
        [_name(peer), line["version"], line["client"], line["synced"], line["notes"]]
        for peer, line in result.peers.items()
    ]


# --- rates ----------------------------------------------------------------------------------------


def _rate_names() -> Row:
    return [f"{name} {items}" for items in CALLERS for name in ("add", "poll+ack")]


def _rate_columns(size: int) -> list[str]:
    shapes = [Shape(items, size) for items in CALLERS]
    return [column(work, shape) for shape in shapes for work in ("add", "take")]


def _rates(result: Result, size: int) -> list[Row]:
    columns = _rate_columns(size)
    sustained = f"sustained, {size} B"
    rows = []
    for peer, line in result.peers.items():
        cells = [_rate_cell(line["figures"].get(name)) for name in columns]
        found = line["figures"].get(sustained, {}).get("items/s")
        rows.append([_name(peer), *cells, _thousands(found)])
    rows.append(["ahead of the best peer", *(_ahead(result, c) for c in [*columns, sustained])])
    ours = [result.figure(OURS, name, "items/s") for name in columns]
    for yardstick in (AS_BEFORE, NOW):
        limits = [result.limit(yardstick, name) for name in columns]
        shares = [
            f"{mine / limit:.0%}" if mine and limit else "-"
            for mine, limit in zip(ours, limits, strict=True)
        ]
        rows.append([yardstick, *map(_thousands, limits), "-"])
        rows.append(["our share of that", *shares, "-"])
    return rows


def _rate_cell(figures: dict[str, Any] | None) -> str:
    if not figures:
        return "-"
    low, high = _thousands(figures["lowest"]), _thousands(figures["highest"])
    return f"{_thousands(figures['items/s'])} ({low} to {high})"


def _thousands(rate: float | None) -> str:
    if rate is None:
        return "-"
    return f"{rate / 1000:.1f}" if rate < 100_000 else f"{rate / 1000:.0f}"


def _ahead(result: Result, name: str) -> str:
    best, ours = result.best_peer(name, "items/s"), result.figure(OURS, name, "items/s")
    if best is None or ours is None:
        return "-"
    return f"{ours / best[1]:.1f}x ({best[0]})"


# --- all else -------------------------------------------------------------------------------------


def _cells(result: Result, peer: str, column_name: str, *names: str) -> Row:
    found = [result.figure(peer, column_name, name) for name in names]
    return ["-" if each is None else _number(each) for each in found]


def _number(figure: float) -> str:
    return f"{figure:,.0f}" if figure >= 100 else f"{figure:.1f}"


def _latencies(result: Result) -> list[Row]:
    return [
        [_name(peer)]
        + [
            cell
            for size in SIZES
            for cell in _cells(result, peer, f"sustained, {size} B", "p50 ms", "p99 ms")
        ]
        for peer in result.peers
    ]


def _deep(result: Result) -> list[Row]:
    figures = [figure for _, figure in _DEEP]
    return [[_name(peer), *_cells(result, peer, "deep", *figures)] for peer in result.peers]


def _costs(result: Result) -> list[Row]:
    return [
        [_name(peer)]
        + [
            cell
            for size in SIZES
            for cell in _cells(
                result, peer, f"sustained, {size} B", "resident MB", "written B/item"
            )
        ]
        for peer in result.peers
    ]


def plot(result: Result, file: Path) -> None:
    """Plot the rates of all peers, one chart for each size."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, len(SIZES), figsize=(12, 4.2), sharey=True)
    width = 0.8 / len(result.peers)
    for axis, size in zip(axes, SIZES, strict=True):
        columns = [*_rate_columns(size), f"sustained, {size} B"]
        for number, peer in enumerate(result.peers):
            rates = [result.figure(peer, name, "items/s") or 0 for name in columns]
            places = [at + number * width for at in range(len(columns))]
            axis.bar(places, rates, width, label=peer)
        axis.set_title(f"Items of {size:,} B")
        axis.set_yscale("log")
        axis.set_xticks([at + 0.4 - width / 2 for at in range(len(columns))])
        axis.set_xticklabels([*_rate_names(), "sustained"], rotation=15)
        axis.grid(axis="y", alpha=0.3)
    unsynced = [peer for peer in result.peers if not result.is_synced(peer)]
    exception = f" ({', '.join(unsynced)}: not)" if unsynced else ""
    axes[0].set_ylabel(f"items a second, synced{exception}")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="lower center", ncols=len(result.peers))
    figure.tight_layout(rect=(0, 0.07, 1, 1))
    figure.savefig(file, dpi=110)
    plt.close(figure)
