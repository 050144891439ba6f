"""Lines and tables for people."""

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime

import click

from queueber.cli.output.json_lines import to_base64, to_text
from queueber.limits import DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS


def to_line(contents: bytes) -> str:
    """The contents on one line, without control characters that would disturb a terminal.

    Printable text as it is; other text as `json:"..."`; other bytes as `base64:...`.
    """
    text = to_text(contents)
    return f"base64:{to_base64(contents)}" if text is None else text_to_line(text)


def text_to_line(text: str) -> str:
    return text if text.isprintable() else f"json:{json.dumps(text)}"


def details_line(*parts: str, key: str, batch: str, attributes: Mapping[str, str]) -> str:
    """The indented line below an item; empty when there is nothing to say.

    Texts of the user come last, because they may contain commas.
    """
    shown = [each for each in parts if each]
    named = (("key", key), ("batch", batch))
    shown += [f"{noun} {text_to_line(text)}" for noun, text in named if text]
    shown += [text_to_line(f"{name}={value}") for name, value in attributes.items()]
    return f"    {', '.join(shown)}" if shown else ""


def echo_lines(lines: Iterable[str]) -> None:
    """Print all lines with one write, which is much faster than a write for each."""
    if text := "\n".join(line for line in lines if line):
        click.echo(text)


def counted(count: int, noun: str) -> str:
    """`1 item`, `1,234 items`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def to_duration(ms: float) -> str:
    """`0.5 s`, `10 min`, `7 d`: in the largest unit that divides it."""
    for unit_ms, unit in ((DAY_MS, "d"), (HOUR_MS, "h"), (MINUTE_MS, "min")):
        if ms and ms % unit_ms == 0:
            return f"{ms // unit_ms:,.0f} {unit}"
    return f"{ms / SECOND_MS:,.10g} s"


def to_time(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / SECOND_MS, UTC).isoformat(" ", "milliseconds")[:-6] + "Z"


def echo_table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """The first column holds names and is left-aligned, the others hold numbers."""
    # The import takes a tenth of a second, which commands without tables save.
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    for at, heading in enumerate(headings):
        table.add_column(heading, justify="right" if at else "left", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    # Into a pipe or a file every column is written in full.
    width = None if sys.stdout.isatty() else 10_000
    Console(width=width, markup=False, emoji=False, highlight=False).print(table)
