"""Flags and arguments that several commands share, and the types of their values.

A type turns a text into a value, or says what is wrong. Its name is the kind of value in the help.
"""

import math
import sys
from collections.abc import Callable
from dataclasses import fields
from datetime import datetime
from functools import wraps
from typing import Any, TypeVar

import click

from queueber.cli.output import to_duration
from queueber.cron import to_zone
from queueber.errors import InvalidArgument
from queueber.limits import DELAY_MS_MAX, ID_BYTES, ITEM_TIMEOUT_MS_MAX, LEASE_MS_MAX, SECOND_MS
from queueber.model import ItemState

F = TypeVar("F", bound=Callable[..., object])

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

    limited.__name__ = seconds.__name__
    return limited


delay_seconds = seconds_up_to(DELAY_MS_MAX)
lease_seconds = seconds_up_to(LEASE_MS_MAX, is_zero_allowed=False)
timeout_seconds = seconds_up_to(ITEM_TIMEOUT_MS_MAX, is_zero_allowed=False)
_expiry_seconds = seconds_up_to(DELAY_MS_MAX, is_zero_allowed=False)


def delays(value: object) -> list[float]:
    """Seconds, separated by commas."""
    return [delay_seconds(each) for each in str(value).split(",")]


delays.__name__ = "list"  # The help shows it as the kind of value.


def limit_in_seconds(limit_ms: int) -> str:
    return f"the limit is {limit_ms // SECOND_MS:,} seconds ({to_duration(limit_ms)})"


def moment(value: object) -> datetime:
    """A time with its offset from UTC, or with a time zone behind it."""
    text, _, zone = str(value).strip().partition(" ")
    if zone and zone[0].isdigit():  # date and time may have a space between them
        time_text, _, zone = zone.partition(" ")
        text = f"{text}T{time_text}"
    try:
        read: datetime | None = (found := datetime.fromisoformat(text))
        if zone:
            read = None if found.tzinfo else found.replace(tzinfo=to_zone(zone))
    except (ValueError, InvalidArgument):
        read = None
    if read is None:
        raise click.BadParameter(
            f"{value!r} is no time; give one such as 2026-12-24T08:00+01:00, or "
            "'2026-12-24T08:00 Europe/Berlin'."
        )
    if read.tzinfo is None:
        raise click.BadParameter(
            f"{value!r} has no time zone; add an offset (+01:00 or Z) or a zone (Europe/Berlin)."
        )
    return read


def expires(value: object) -> float | datetime:
    """A number of seconds, or a moment."""
    text = str(value).strip()
    is_moment = "-" in text[1:] or ":" in text
    return moment(value) if is_moment else _expiry_seconds(value)


expires.__name__ = "seconds"


def number(value: object) -> float:
    """A number; the client checks its bounds."""
    try:
        return float(str(value))
    except ValueError:
        raise click.BadParameter(f"{value!r} is not a number.") from None


def whole_number(value: object) -> int:
    text = str(value)
    if not (text.isascii() and text.isdigit() and int(text) < 1 << 63):
        raise click.BadParameter(f"{text!r} is not a number from 0 to 2^63 - 1.")
    return int(text)


whole_number.__name__ = number.__name__


def item_id(value: object) -> bytes:
    """The id of an item or a lease as commands print it, with or without dashes."""
    try:
        read = bytes.fromhex(str(value).replace("-", ""))
    except ValueError:
        read = b""
    if len(read) != ID_BYTES:
        raise click.BadParameter(f"{value!r} is not an id of {2 * ID_BYTES} hex digits.")
    return read


def to_state(value: object, *others: str) -> ItemState:
    """A state; `others` are words that the caller knows besides, for the message."""
    try:
        return ItemState(value)
    except ValueError:
        words = ", ".join([*(each.value for each in ItemState), *others])
        raise click.BadParameter(f"{value!r} is none of {words}.") from None


def _name_and_value(value: object) -> tuple[str, str]:
    name, equals, text = str(value).partition("=")
    if not name or not equals:
        raise click.BadParameter(f"{value!r} is not NAME=VALUE.")
    return name, text


# --- flags and arguments --------------------------------------------------------------------------

lease_argument = click.argument("lease", type=item_id)
ids_argument = click.argument("ids", type=item_id, nargs=-1, required=True, metavar="ID...")
some_ids_argument = click.argument("ids", type=item_id, nargs=-1, metavar="[ID...]")

yes_flag = click.option("--yes", is_flag=True, help="Do not ask for confirmation.")


def count_flag(
    *names: str, least: int = 1, most: int | None = None, **more: Any
) -> Callable[[F], F]:
    """A flag for a whole number in a range; the help shows its default."""
    more = {"show_default": True, **more}
    return click.option(*names, type=click.IntRange(least, most), metavar="NUMBER", **more)


def pairs_flag(*names: str, help: str) -> Callable[[F], F]:
    """A flag for a name and a value, as often as somebody likes: a dictionary of all of them."""
    return click.option(
        *names,
        type=_name_and_value,
        multiple=True,
        callback=lambda _context, _flag, pairs: dict(pairs),
        metavar="NAME=VALUE",
        help=f"{help} May be repeated.",
    )


def state_flag(**more: Any) -> Callable[[F], F]:
    """`more` says whether the flag is required, or its default."""
    text = "ready, delayed, leased or dead."
    more = {"shell_complete": completing_states(), **more}
    return click.option("--state", type=to_state, metavar="STATE", help=text, **more)


def completing_states(*others: str) -> Callable[[click.Context, click.Parameter, str], list[str]]:
    """What a shell offers for a flag that takes a state, or one of the `others`."""
    words = [*(each.value for each in ItemState), *others]
    return lambda _context, _flag, begun: [each for each in words if each.startswith(begun)]


def gathered(name: str, kind: type, *flags: Callable[[Any], Any]) -> Callable[[F], F]:
    """Give a command these flags, and pass it one object of a dataclass with their values.

    Other flags of the command that have the name of a field are gathered, too.
    """
    known = [each.name for each in fields(kind)]

    def decorate(command: F) -> F:
        @wraps(command)
        def with_object(**given: Any) -> Any:
            values = {each: given.pop(each) for each in known if each in given}
            return command(**{name: kind(**values)}, **given)

        for flag in reversed(flags):
            with_object = flag(with_object)
        return with_object  # type: ignore[return-value]  # click keeps its own list of parameters

    return decorate


class ListByDefault(click.Group):
    """A group that runs its `list` command when no command is named."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        is_help = bool(args) and args[0] in ctx.help_option_names
        is_flag = bool(args) and args[0].startswith("-") and not is_help
        # A shell that completes asks with what comes before: nothing, and wants the commands.
        if is_flag or (not args and not ctx.resilient_parsing):
            args = ["list", *args]
        return super().parse_args(ctx, args)


def check_exclusive(**given: object) -> None:
    """Refuse more than one of these flags."""
    flags = ["--" + name for name, value in given.items() if value]
    if len(flags) > 1:
        raise InvalidArgument(f"{' and '.join(flags)} do not go together; give one of them")


def confirm(question: str) -> bool:
    """Ask on the terminal. Piped input is never an answer: it was meant for another program."""
    if not sys.stdin.isatty():
        raise InvalidArgument("there is no terminal to ask on; give --yes if you are sure")
    return click.confirm(question, err=True)
