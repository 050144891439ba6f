"""Tables in Markdown, which every comparison writes alike."""

from pathlib import Path
from typing import Any

from bench.peers.contender import RATE
from bench.peers.results import OURS, Result

PAGE = Path(__file__).parents[2] / "docs" / "performance.md"

Row = list[str]


def replace_between(page: Path, begin: str, end: str, text: str) -> None:
    """Replace what is between two marks of a page, each of which it has once."""
    head, rest = page.read_text().split(begin)
    _, tail = rest.split(end)
    page.write_text(head + begin + text + end + tail)


def opening(result: Result) -> list[str]:
    """When and where it was taken, who took part, and who could not."""
    return [
        f"Taken {result.taken_at} with `{result.command}`; "
        + ", ".join(f"{name} {value}" for name, value in result.machine.items())
        + ".",
        table(["", "version", "Python client", "synced", "notes"], _contenders(result)),
        *(f"Not measured: {peer}, because {reason}." for peer, reason in result.left_out.items()),
    ]


def joined(parts: list[str]) -> str:
    return "\n\n".join(part.rstrip("\n") for part in parts) + "\n"


def table(head: Row, rows: list[Row]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def shown_name(peer: str) -> str:
    return f"**{peer}**" if peer == OURS else peer


def _contenders(result: Result) -> list[Row]:
    return [
        [shown_name(peer), line["version"], line["client"], line["synced"], line["notes"]]
        for peer, line in result.peers.items()
    ]


def rate_cell(figures: dict[str, Any] | None) -> str:
    if not figures:
        return "-"
    low, high = thousands(figures["lowest"]), thousands(figures["highest"])
    return f"{thousands(figures[RATE])} ({low} to {high})"


def thousands(rate: float | None) -> str:
    if rate is None:
        return "-"
    return f"{rate / 1000:.1f}" if rate < 100_000 else f"{rate / 1000:.0f}"


def ahead(result: Result, name: str) -> str:
    best, ours = result.best_peer(name, RATE), result.figure(OURS, name, RATE)
    if best is None or ours is None:
        return "-"
    return f"{ours / best[1]:.1f}x ({best[0]})"


def shown_number(figure: float) -> str:
    return f"{figure:,.0f}" if figure >= 100 else f"{figure:.1f}"
