"""Types of flags and arguments: each turns a text into a value, or says what is wrong."""

import math
from collections.abc import Callable

import click

from queueber.cli.output.text import to_duration
from queueber.limits import ID_BYTES, SECOND_MS
from queueber.model import ItemState

_SECONDS_END = 1e12
"""The client refuses longer durations."""


def seconds(value: object) -> float:
    try:
        read = float(str(value))
    except ValueError:
        read = math.nan
    if not 0 <= read < math.inf:
        raise click.BadParameter(f"{value!r} is not a number of seconds, 0 or more.")
    if read >= _SECONDS_END:
        raise click.BadParameter(f"{value!r} is too long; give less than {_SECONDS_END:g} seconds.")
    return read


def seconds_up_to(limit_ms: int, *, is_zero_allowed: bool = True) -> Callable[[object], float]:
    """Seconds with a limit that is the same for all servers."""

    def limited(value: object) -> float:
        read = seconds(value)
        if not read and not is_zero_allowed:
            raise click.BadParameter(f"{value!r} is too short; give more than 0.")
        if read * SECOND_MS > limit_ms:
            raise click.BadParameter(f"{value!r} is too long; {limit_in_seconds(limit_ms)}.")
        return read

    # The help shows this name as the kind of value.
    limited.__name__ = seconds.__name__
    return limited


def limit_in_seconds(limit_ms: int) -> str:
    return f"the limit is {limit_ms // SECOND_MS:,} seconds ({to_duration(limit_ms)})"


def hex_id(value: object) -> bytes:
    """The id of an item or a lease as commands print it, with or without dashes."""
    try:
        read = bytes.fromhex(str(value).replace("-", ""))
    except ValueError:
        read = b""
    if len(read) != ID_BYTES:
        raise click.BadParameter(f"{value!r} is not an id of {2 * ID_BYTES} hex digits.")
    return read


def whole_number(value: object) -> int:
    text = str(value)
    if not (text.isascii() and text.isdigit() and int(text) < 1 << 63):
        raise click.BadParameter(f"{text!r} is not a number from 0 to 2^63 - 1.")
    return int(text)


def number(value: object) -> float:
    """A number; the client checks its bounds."""
    try:
        return float(str(value))
    except ValueError:
        raise click.BadParameter(f"{value!r} is not a number.") from None


def state(value: object) -> ItemState:
    try:
        return ItemState(value)
    except ValueError:
        words = ", ".join(each.value for each in ItemState)
        raise click.BadParameter(f"{value!r} is none of {words}.") from None


def name_and_value(value: object) -> tuple[str, str]:
    name, equals, text = str(value).partition("=")
    if not name or not equals:
        raise click.BadParameter(f"{value!r} is not NAME=VALUE.")
    return name, text
