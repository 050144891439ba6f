"""Flags of every command that talks to a server: which server, which queue, how to print."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any, TypeVar

import click

from queueber import Client, connect
from queueber.cli.flags.types import hex_id, seconds, state
from queueber.config import DEFAULT_LISTEN
from queueber.errors import InvalidArgument

F = TypeVar("F", bound=Callable[..., object])

_CONNECT_SECONDS = 2.0
"""Short, because a person waits; a server in the same network answers in milliseconds."""


@dataclass(frozen=True, slots=True)
class Target:
    """The server that a command talks to, and whether the command prints JSON."""

    address: str
    connect_seconds: float
    use_json: bool

    def connect(self) -> Client:
        return connect(self.address, connect_timeout=self.connect_seconds)


def client_flags(command: F) -> F:
    """Give a command the flags of `Target`, and pass it a `target`."""

    @wraps(command)
    def with_target(
        *args: Any, address: str, connect_timeout: float, use_json: bool, **kwargs: Any
    ) -> Any:
        return command(*args, target=Target(address, connect_timeout, use_json), **kwargs)

    for flag in reversed(_TARGET_FLAGS):
        with_target = flag(with_target)
    return with_target  # type: ignore[return-value]  # click keeps its own list of parameters


_TARGET_FLAGS = (
    click.option(
        "--address",
        default=DEFAULT_LISTEN,
        envvar="QUEUEBER_ADDRESS",
        show_default=True,
        show_envvar=True,
        metavar="HOST:PORT",
        help="Address of the server.",
    ),
    click.option(
        "--connect-timeout",
        type=seconds,
        default=_CONNECT_SECONDS,
        show_default=True,
        help="How long to try to reach the server.",
    ),
    click.option("--json", "use_json", is_flag=True, help="Print JSON, one object a line."),
)

queue_flag = click.option(
    "--queue", "-q", default="default", show_default=True, metavar="NAME", help="Name of the queue."
)

must_exist_flag = click.option(
    "--must-exist", is_flag=True, help="Fail if the queue does not exist, instead of creating it."
)

raw_flag = click.option(
    "--raw", is_flag=True, help="Print only the contents, a newline after each."
)


def state_flag(**more: Any) -> Callable[[F], F]:
    """`more` says whether the flag is required, or its default."""
    text = "ready, delayed, leased or dead."
    return click.option("--state", type=state, metavar="STATE", help=text, **more)


lease_argument = click.argument("lease", type=hex_id)
ids_argument = click.argument("ids", type=hex_id, nargs=-1, required=True, metavar="ID...")
some_ids_argument = click.argument("ids", type=hex_id, nargs=-1, metavar="[ID...]")


class ListByDefault(click.Group):
    """A group that runs its `list` command when no command is named."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        is_help = bool(args) and args[0] in ctx.help_option_names
        if not args or (args[0].startswith("-") and not is_help):
            args = ["list", *args]
        return super().parse_args(ctx, args)


def check_exclusive(**given: object) -> None:
    """Refuse more than one of these flags."""
    flags = ["--" + name for name, value in given.items() if value]
    if len(flags) > 1:
        raise InvalidArgument(f"{' and '.join(flags)} do not go together; give one of them")
