"""Prints the result: tables on the terminal and in the docs, and a plot."""

from pathlib import Path

from rich.markdown import Markdown

from bench.measure import Shape, stdout
from bench.peers.contest import CALLERS, SIZES, column
from bench.peers.results import AS_BEFORE, NOW, OURS, Result
from bench.peers.tables import (
    PAGE,
    Row,
    ahead,
    joined,
    opening,
    rate_cell,
    replace_between,
    shown_name,
    shown_number,
    table,
    thousands,
)

PLOT = PAGE.parent / "peers.png"
BEGIN, END = "<!-- peers: written by make bench -->\n", "<!-- end of peers -->\n"

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
    stdout().print(Markdown(render(result)))


def write_page(result: Result) -> None:
    """Replace the tables and the plot with the newest ones."""
    replace_between(PAGE, BEGIN, END, render(result))
    plot(result, PLOT)


def render(result: Result) -> str:
    parts = opening(result)
    for size in SIZES:
        parts += [
            f"Items of {size:,} B, thousands a second (lowest to highest round):",
            table(["", *_rate_names(), "sustained"], _rates(result, size)),
        ]
    sustained = [f"{size:,} B {name}" for size in SIZES for name in ("p50 ms", "p99 ms")]
    parts += [
        "Sustained, from the add to the worker, with at most 1,000 items waiting:",
        table(["", *sustained], _latencies(result)),
        "Deep, 100 B: p99 of a poll of one item in ms, when 2,000 items wait, when millions do, "
        "and after those have passed; *beside* is another queue, in which 2,000 items wait, polled "
        "in turn:",
        table(["", *(name for name, _ in _DEEP)], _deep(result)),
        "Memory after a sustained run, and bytes written to disk for an item's whole life:",
        table(["", *(f"{s:,} B {n}" for s in SIZES for n in ("MB", "B/item"))], _costs(result)),
    ]
    return joined(parts)


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
        cells = [rate_cell(line["figures"].get(name)) for name in columns]
        found = line["figures"].get(sustained, {}).get("items/s")
        rows.append([shown_name(peer), *cells, thousands(found)])
    rows.append(["ahead of the best peer", *(ahead(result, c) for c in [*columns, sustained])])
    ours = [result.figure(OURS, name, "items/s") for name in columns]
    for yardstick in (AS_BEFORE, NOW):
        limits = [result.limit(yardstick, name) for name in columns]
        shares = [
            f"{mine / limit:.0%}" if mine and limit else "-"
            for mine, limit in zip(ours, limits, strict=True)
        ]
        rows.append([yardstick, *map(thousands, limits), "-"])
        rows.append(["our share of that", *shares, "-"])
    return rows


# --- all else -------------------------------------------------------------------------------------


def _cells(result: Result, peer: str, column_name: str, *names: str) -> Row:
    found = [result.figure(peer, column_name, name) for name in names]
    return ["-" if each is None else shown_number(each) for each in found]


def _latencies(result: Result) -> list[Row]:
    return [
        [shown_name(peer)]
        + [
            cell
            for size in SIZES
            for cell in _cells(result, peer, f"sustained, {size} B", "p50 ms", "p99 ms")
        ]
        for peer in result.peers
    ]


def _deep(result: Result) -> list[Row]:
    figures = [figure for _, figure in _DEEP]
    return [[shown_name(peer), *_cells(result, peer, "deep", *figures)] for peer in result.peers]


def _costs(result: Result) -> list[Row]:
    return [
        [shown_name(peer)]
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
