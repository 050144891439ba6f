"""Prints the result of the comparison of streams, on the terminal and in the docs."""

from rich.markdown import Markdown

from bench.measure import stdout
from bench.peers.contender import P99, RATE
from bench.peers.results import OURS, Figures, Result
from bench.peers.tables import (
    PAGE,
    Row,
    joined,
    opening,
    replace_between,
    shown_name,
    shown_number,
    table,
)
from bench.streams.contest import BATCH_CALLERS, CALLERS, FAN_OUT, LATENCY, PACE, READS, WRITES

BEGIN, END = "<!-- streams: written by make bench -->\n", "<!-- end of streams -->\n"
_MB = 1_000_000


def show(result: Result) -> None:
    stdout().print(Markdown(render(result)))


def write_page(result: Result) -> None:
    replace_between(PAGE, BEGIN, END, render(result))


def render(result: Result) -> str:
    return joined(
        [
            *opening(result),
            f"Messages of 1 KiB a second, and streams created a second, from {CALLERS} callers "
            f"(batches: {BATCH_CALLERS}); in brackets the lowest and the highest round:",
            table(["", *WRITES], _rows(result, WRITES, 1)),
            "Catch-up, MB a second, of 64 MiB that were appended in pieces of 1 MiB, and in JSON "
            "values of 1 KiB:",
            table(["", *READS], _rows(result, READS, _MB)),
            "Fan-out to 1,000 readers by server-sent events: messages delivered a second, and "
            f"milliseconds from an append to a reader with {PACE} messages a second:",
            table(["", FAN_OUT, LATENCY], _rows(result, (FAN_OUT, LATENCY), 1)),
        ]
    )


def _rows(result: Result, columns: tuple[str, ...], unit: int) -> list[Row]:
    rows = [
        [shown_name(peer), *(_cell(line["figures"].get(name), unit) for name in columns)]
        for peer, line in result.peers.items()
    ]
    ours = [peer for peer in result.peers if peer.startswith(OURS)]
    others = [peer for peer in result.peers if peer not in ours and result.is_synced(peer)]
    for own in ours:
        rows += [
            [f"{own} / {peer}", *(_ratio(result, own, peer, name) for name in columns)]
            for peer in others
        ]
    return rows


def _cell(figures: Figures | None, unit: int) -> str:
    if not figures:
        return "-"
    median = figures.get(RATE, figures.get(P99, 0.0))
    low, high = shown_number(figures["lowest"] / unit), shown_number(figures["highest"] / unit)
    return f"{shown_number(median / unit)} ({low} to {high})"


def _ratio(result: Result, ours: str, peer: str, column: str) -> str:
    """Above 1 we are better: more a second, or fewer milliseconds."""
    name = P99 if column == LATENCY else RATE
    own, other = result.figure(ours, column, name), result.figure(peer, column, name)
    if not own or not other:
        return "-"
    return f"{other / own if column == LATENCY else own / other:.2f}x"
