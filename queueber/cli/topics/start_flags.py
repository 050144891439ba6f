"""Flags that say where in a topic to begin, and how they become a start of the client."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import click

from queueber.cli.flags import F, check_exclusive, count_flag, seconds
from queueber.client.arguments.positions import StartOptions

_WORDS = ("earliest", "latest")


def place(value: object) -> int | str | datetime:
    """An offset, "earliest", "latest", or a time such as 2026-11-17T10:00Z."""
    text = str(value)
    if text in _WORDS:
        return text
    if text.isascii() and text.isdigit() and int(text) < 1 << 63:
        return int(text)
    try:
        read = datetime.fromisoformat(text)
    except ValueError:
        raise click.BadParameter(
            f"{text!r} is neither an offset, 'earliest', 'latest', nor a time such as "
            "2026-11-17T10:00Z."
        ) from None
    return read if read.tzinfo is not None else read.astimezone()


place.__name__ = "place"


def start_flags(name: str, help: str) -> Callable[[F], F]:
    """`--from` (or another name) with `--last` and `--since`; see `to_start`."""

    def decorate(command: F) -> F:
        for flag in (
            click.option(
                "--since", type=seconds, help="Begin with messages of the last so many seconds."
            ),
            count_flag("--last", least=0, help="Begin so many messages before the end."),
            click.option(name, "place", type=place, metavar="PLACE", help=help),
        ):
            command = flag(command)
        return command

    return decorate


def to_start(
    given: dict[str, Any], default: StartOptions, *, moves: bool = True, flag: str = "from"
) -> StartOptions:
    """What the flags say; takes them out of `given`."""
    at, last, since = given.pop("place"), given.pop("last"), given.pop("since")
    chosen = {flag: at, "last": last, "since": since}
    check_exclusive(**{name: value is not None for name, value in chosen.items()})
    if at is not None:
        return {"start": at, "moves": moves}
    if last is not None:
        return {"last": last}
    if since is not None:
        now = datetime.now(UTC).timestamp()
        return {"time": max(0.0, now - since)}
    return default
