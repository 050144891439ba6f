"""What the commands of a client have in common: where the server is, and how to answer."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any, TypeVar

import click

from queueber.cli.output import to_duration
from queueber.client import Client, connect
from queueber.config import DEFAULT_LISTEN
from queueber.errors import InvalidArgument
from queueber.limits import ID_BYTES, SECOND_MS
from queueber.model import ItemState

F = TypeVar("F", bound=Callable[..., object])

_SECONDS_END = 1e12
"""More is no duration for clients."""

_CONNECT_SECONDS = 2.0
"""Short, for a person waits: a server on this machine or in this room answers in milliseconds."""


@dataclass(frozen=True, slots=True)
class Target:
    """The server that a command talks to, and whether it answers in JSON."""

    address: str
    timeout_seconds: float
    use_json: bool

    def connect(self) -> Client:
        return connect(self.address, connect_timeout=self.timeout_seconds)


def client_options(command: F) -> F:
    """Give a command the options of `Target`, and the target itself as `target`."""

    @wraps(command)
    def with_target(*args: Any, address: str, timeout: float, use_json: bool, **kwargs: Any) -> Any:
        return command(*args, target=Target(address, timeout, use_json), **kwargs)

    for option in reversed(_TARGET_OPTIONS):
        with_target = option(with_target)
    return with_target  # type: ignore[return-value]  # click keeps its own list of parameters


def seconds(value: object) -> float:
    """The type of an option."""
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
    """The type of an option whose limit everybody knows, not the server alone."""

    def limited(value: object) -> float:
        read = seconds(value)
        if not read and not is_zero_allowed:
            raise click.BadParameter(f"{value!r} is too short; give more than 0.")
        if read * SECOND_MS > limit_ms:
            raise click.BadParameter(f"{value!r} is too long; {limit_in_seconds(limit_ms)}.")
        return read

    # What the help calls a value.
    limited.__name__ = seconds.__name__
    return limited


def limit_in_seconds(limit_ms: int) -> str:
    return f"the limit is {limit_ms // SECOND_MS:,} seconds ({to_duration(limit_ms)})"


def hex_id(value: object) -> bytes:
    """The type of an argument: an id or a lease as we print them, with or without dashes."""
    try:
        read = bytes.fromhex(str(value).replace("-", ""))
    except ValueError:
        read = b""
    if len(read) != ID_BYTES:
        raise click.BadParameter(f"{value!r} is not an id of {2 * ID_BYTES} hex digits.")
    return read


def number(value: object) -> int:
    """The type of an option: as large as clients take it."""
    text = str(value)
    if not (text.isascii() and text.isdigit() and int(text) < 1 << 63):
        raise click.BadParameter(f"{text!r} is not a number from 0 to 2^63 - 1.")
    return int(text)


def state(value: object) -> ItemState:
    """The type of an option."""
    if isinstance(value, ItemState):
        return value
    words = {each.value.replace(" ", "-"): each for each in ItemState}
    # With a dash for shells, a space as we print it, an underscore as in Python.
    word = str(value).replace(" ", "-").replace("_", "-")
    if word not in words:
        raise click.BadParameter(f"{value!r} is none of {', '.join(words)}.")
    return words[word]


_TARGET_OPTIONS = (
    click.option(
        "--address",
        default=DEFAULT_LISTEN,
        envvar="QUEUEBER_ADDRESS",
        show_default=True,
        show_envvar=True,
        metavar="HOST:PORT",
        help="The server.",
    ),
    click.option(
        "--timeout",
        type=seconds,
        default=_CONNECT_SECONDS,
        show_default=True,
        help="How long to try to reach the server.",
    ),
    click.option("--json", "use_json", is_flag=True, help="Answer with one JSON object a line."),
)

queue_option = click.option(
    "--queue", "-q", default="default", show_default=True, metavar="NAME", help="The queue."
)

raw_option = click.option(
    "--raw", is_flag=True, help="Print the contents alone, each and a newline."
)


def state_option(**settings: Any) -> Callable[[F], F]:
    """Needed or with a default, as the settings say."""
    text = "ready, delayed, leased or dead."
    return click.option("--state", type=state, metavar="STATE", help=text, **settings)


lease_argument = click.argument("lease", type=hex_id)
ids_argument = click.argument("ids", type=hex_id, nargs=-1, required=True, metavar="ID...")


class ListUnlessNamed(click.Group):
    """A group that alone, or with options only, is its `list`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        is_help = bool(args) and args[0] in ctx.help_option_names
        if not args or (args[0].startswith("-") and not is_help):
            args = ["list", *args]
        return super().parse_args(ctx, args)


def check_exclusive(**given: object) -> None:
    """At most one of these flags may be given."""
    flags = ["--" + name for name, value in given.items() if value]
    if len(flags) > 1:
        raise InvalidArgument(f"{' and '.join(flags)} do not go together; give one of them")
