"""Prints the result of the comparison of topics, on the terminal and in the docs."""

from rich.markdown import Markdown

from bench.measure import stdout
from bench.peers.contender import P99
from bench.peers.contest import SIZES
from bench.peers.results import OURS, Result
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
)
from bench.topics.contest import LATENCY, RATES, column

BEGIN, END = "<!-- topics: written by make bench -->\n", "<!-- end of topics -->\n"


def show(result: Result) -> None:
    stdout().print(Markdown(render(result)))


def write_page(result: Result) -> None:
    replace_between(PAGE, BEGIN, END, render(result))


def render(result: Result) -> str:
    parts = opening(result)
    for size in SIZES:
        parts += [
            f"Messages of {size:,} B, thousands a second (lowest to highest round), and "
            "milliseconds from a publish to the consumer:",
            table(["", *RATES, LATENCY], _rows(result, size)),
        ]
    return joined(parts)


def _rows(result: Result, size: int) -> list[Row]:
    columns = [column(name, size) for name in RATES]
    latency = column(LATENCY, size)
    rows = []
    for peer, line in result.peers.items():
        p99_ms = result.figure(peer, latency, P99)
        cells = [rate_cell(line["figures"].get(name)) for name in columns]
        shown = "-" if p99_ms is None else shown_number(p99_ms)
        rows.append([shown_name(peer), *cells, shown])
    if OURS in result.peers:
        leads = [ahead(result, name) for name in columns]
        rows.append(["ahead of the best peer", *leads, _ahead_in_latency(result, latency)])
    return rows


def _ahead_in_latency(result: Result, latency: str) -> str:
    best, ours = result.best_peer(latency, P99, least=True), result.figure(OURS, latency, P99)
    if best is None or not ours:
        return "-"
    return f"{best[1] / ours:.1f}x ({best[0]})"
