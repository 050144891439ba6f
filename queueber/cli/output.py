"""How answers are written: JSON for programs, tables and lines for people."""

import base64
import json
import sys
from collections.abc import Iterable, Sequence
from dataclasses import fields, is_dataclass

import click


def echo_json(value: object) -> None:
    """One object on one line."""
    click.echo(json.dumps(value, ensure_ascii=False))


def to_json(value: object) -> object:
    """A plain value, with its fields named as on the wire."""
    if is_dataclass(value):
        return {_camel(f.name): to_json(getattr(value, f.name)) for f in fields(value)}
    return value


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def to_text(contents: bytes) -> str | None:
    """The contents as text; None when they are not UTF-8."""
    try:
        return contents.decode()
    except UnicodeDecodeError:
        return None


def to_base64(contents: bytes) -> str:
    return base64.b64encode(contents).decode()


def to_line(contents: bytes) -> str:
    """The contents on one line that does a terminal no harm.

    Text as it is; text with line breaks or control characters as `json:"..."`; else `base64:...`.
    """
    text = to_text(contents)
    if text is None:
        return f"base64:{to_base64(contents)}"
    return text if text.isprintable() else f"json:{json.dumps(text)}"


def counted(count: int, noun: str) -> str:
    """`1 item`, `1,234 items`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def echo_table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """The first column is a name, the others are numbers."""
    # Costs a tenth of a second that most commands can do without.
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    for at, heading in enumerate(headings):
        table.add_column(heading, justify="right" if at else "left", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    # Into a pipe or a file everything is written, however wide it gets.
    width = None if sys.stdout.isatty() else 10_000
    Console(width=width, markup=False, emoji=False, highlight=False).print(table)
