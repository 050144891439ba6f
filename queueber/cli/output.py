"""What commands print: JSON for programs, lines and tables for people."""

import base64
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime, tzinfo
from enum import Enum
from typing import Any

import click

from queueber import Item
from queueber.limits import DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS
from queueber.model import ItemInfo, ItemOptions, Result, ScheduleInfo

# --- JSON: one object a line, with the field names of the wire ------------------------------------


def echo_json(value: object) -> None:
    click.echo(json.dumps(value, ensure_ascii=False, default=to_json))


def to_json(value: object) -> object:
    """A dataclass as a dictionary with names in camelCase; ids in hex."""
    if is_dataclass(value):
        return {to_camel_case(f.name): to_json(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, Enum):
        return value.value
    return dict(value) if isinstance(value, Mapping) else value


def item_to_json(item: Item | ItemInfo | Result | ScheduleInfo) -> dict[str, object]:
    """An item, a result or a schedule: bytes as text and in base64; null for what it lacks."""
    found: dict[str, object] = {}
    for name in (f.name for f in fields(item)):
        value = getattr(item, name)
        if name in {"contents", "result"}:
            found |= {name: _to_text(value), f"{name}Base64": _to_base64(value)}
        else:
            found[field_name(name)] = None if value in ("", b"") else to_json(value)
    return found


def awaited(item: ItemInfo) -> str:
    """What an item waits for, in one line; empty if it waits for nothing."""
    listed = [each.hex() for each in item.after]
    if item.after_batch:
        listed.append(f"batch {text_to_line(item.after_batch)}")
    return ", ".join(listed)


def options_of(item: ItemInfo) -> str:
    """What an item has of its own in place of what its queue says, in one line; empty: nothing."""
    expires = f"expires {to_time(item.expires_at_ms)}" if item.expires_at_ms else ""
    return _options_line(item, expires)


def options_to_add(options: ItemOptions) -> str:
    """The same of items that are added later."""
    after_ms = options.expires_ms
    return _options_line(options, f"expires after {to_duration(after_ms)}" if after_ms else "")


def _options_line(own: ItemInfo | ItemOptions, expires: str) -> str:
    listed = []
    if own.attempts_max is not None:
        listed.append(f"attempts_max {own.attempts_max or 'none'}")
    if own.backoff_ms:
        listed.append(f"backoff {', '.join(map(to_duration, own.backoff_ms))}")
    if own.timeout_ms:
        listed.append(f"timeout {to_duration(own.timeout_ms)}")
    if expires:
        listed.append(expires)
    return ", ".join(listed)


def field_name(name: str) -> str:
    """The JSON name of an item's field: `lease` for `lease_id`, as `poll` prints it."""
    return to_camel_case(name.removesuffix("_id"))


def to_camel_case(name: str) -> str:
    first, *rest = name.replace(" ", "_").split("_")
    return first + "".join(word.capitalize() for word in rest)


def _to_text(contents: bytes) -> str | None:
    """The contents as text; None when they are not UTF-8."""
    try:
        return contents.decode()
    except UnicodeDecodeError:
        return None


def _to_base64(contents: bytes) -> str:
    return base64.b64encode(contents).decode()


# --- lines and tables -----------------------------------------------------------------------------


CONTENTS_SHOWN_MAX = 2000
"""Bytes of contents that `peek` shows on a terminal: some screens of it help nobody."""


def item_lines(
    item: Item | ItemInfo | Result, *details: str, bytes_max: int | None = None
) -> tuple[str, str]:
    """Its id and contents, and an indented line with details; empty if there is nothing to say.

    Texts of the user come last, because they may contain commas. Of contents above `bytes_max` the
    line has the beginning, and says how much is missing.
    """
    line = f"{item.id.hex()}  {_to_short_line(contents_of(item), bytes_max)}"
    if isinstance(item, Result):
        line = f"{item.offset}  {line}"
    shown = [each for each in details if each]
    if not isinstance(item, ItemInfo) and item.attempt > 1:
        shown.append(f"attempt {item.attempt}")
    if isinstance(item, Item) and item.deliveries > item.attempt:
        shown.append(f"delivery {item.deliveries}")
    named = (("key", item.key), ("batch", item.batch))
    shown += [f"{noun} {text_to_line(text)}" for noun, text in named if text]
    shown += [text_to_line(f"{name}={value}") for name, value in item.attributes.items()]
    return line, f"    {', '.join(shown)}" if shown else ""


def contents_of(item: Item | ItemInfo | Result) -> bytes:
    return item.result if isinstance(item, Result) else item.contents


def to_line(contents: bytes) -> str:
    """The contents on one line, without control characters that would disturb a terminal.

    Printable text as it is; other text as `json:"..."`; other bytes as `base64:...`.
    """
    text = _to_text(contents)
    return f"base64:{_to_base64(contents)}" if text is None else text_to_line(text)


def _to_short_line(contents: bytes, bytes_max: int | None) -> str:
    if bytes_max is None or len(contents) <= bytes_max:
        return to_line(contents)
    beginning = contents[:bytes_max]
    if _to_text(contents) is not None:
        # Not in the middle of a character.
        beginning = beginning.decode(errors="ignore").encode()
    left_out = len(contents) - len(beginning)
    return f"{to_line(beginning)} ... ({counted(left_out, 'byte')} more; --raw prints all)"


def text_to_line(text: str) -> str:
    return text if text.isprintable() else f"json:{json.dumps(text)}"


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


def to_time_in(zone: tzinfo, at_ms: int) -> str:
    """`2026-11-19 03:00:00+01:00`: the time of a clock in a time zone."""
    return datetime.fromtimestamp(at_ms / SECOND_MS, zone).isoformat(" ", "seconds")


def number_rows(found: object, *names: str) -> list[tuple[str, str]]:
    """Rows of a table, for attributes that are numbers."""
    return [(name.replace("_", " "), f"{getattr(found, name):,}") for name in names]


def table_of(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> Any:
    """A table of rich: the first column holds names and is left-aligned, the others numbers."""
    # The import takes a tenth of a second, which commands without tables save.
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    for at, heading in enumerate(headings):
        table.add_column(heading, justify="right" if at else "left", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    return table


def echo_table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table such as `table_of` makes."""
    from rich.console import Console

    # Into a pipe or a file every column is written in full.
    width = None if sys.stdout.isatty() else 10_000
    Console(width=width, markup=False, emoji=False, highlight=False).print(table_of(headings, rows))
