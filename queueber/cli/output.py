"""How answers are written: JSON for programs, tables and lines for people."""

import base64
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime

import click

from queueber.limits import DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS

# --- programs -------------------------------------------------------------------------------------


def echo_json(value: object) -> None:
    """One object on one line."""
    click.echo(json.dumps(value, ensure_ascii=False))


def to_json(value: object) -> object:
    """A plain value, with its fields named as on the wire, and ids as we print them."""
    if is_dataclass(value):
        return {_camel(f.name): to_json(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, bytes):
        return value.hex()
    return dict(value) if isinstance(value, Mapping) else value


def item_to_json(item: object) -> dict[str, object]:
    """An item or a result: its bytes as text and in base64, and null for what it does not have."""
    found: dict[str, object] = {}
    for name in (f.name for f in fields(item)):  # type: ignore[arg-type]  # any of three classes
        value = getattr(item, name)
        if name in {"contents", "result"}:
            found |= {name: to_text(value), f"{name}Base64": to_base64(value)}
        else:
            found[field_name(name)] = None if value in ("", b"") else to_json(value)
    return found


def field_name(name: str) -> str:
    """How a field of an item is called in JSON. The wire has `lease`, as `poll` does."""
    return _camel(name.removesuffix("_id"))


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


# --- people ---------------------------------------------------------------------------------------


def to_line(contents: bytes) -> str:
    """The contents on one line that does a terminal no harm.

    Text as it is; text with line breaks or control characters as `json:"..."`; else `base64:...`.
    """
    text = to_text(contents)
    return f"base64:{to_base64(contents)}" if text is None else text_to_line(text)


def text_to_line(text: str) -> str:
    return text if text.isprintable() else f"json:{json.dumps(text)}"


def details_line(*told: str, key: str, batch: str, attributes: Mapping[str, str]) -> str:
    """What there is to say of an item beside its contents, indented; empty when there is nothing.

    It ends with the item's own words, which may have commas in them.
    """
    own = [("key", key), ("batch", batch)]
    parts = [each for each in told if each]
    parts += [f"{noun} {text_to_line(text)}" for noun, text in own if text]
    parts += [text_to_line(f"{name}={value}") for name, value in attributes.items()]
    return f"    {', '.join(parts)}" if parts else ""


def echo_lines(lines: Iterable[str]) -> None:
    """One write for all: a write for each takes longer than most commands."""
    if text := "\n".join(line for line in lines if line):
        click.echo(text)


def counted(count: int, noun: str) -> str:
    """`1 item`, `1,234 items`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def to_duration(ms: float) -> str:
    """`0.5 s`, `10 min`, `7 d`: in the largest unit of which it is a whole number."""
    for unit_ms, unit in ((DAY_MS, "d"), (HOUR_MS, "h"), (MINUTE_MS, "min")):
        if ms and ms % unit_ms == 0:
            return f"{ms // unit_ms:,.0f} {unit}"
    return f"{ms / SECOND_MS:,.10g} s"


def to_time(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / SECOND_MS, UTC).isoformat(" ", "milliseconds")[:-6] + "Z"


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
