"""Places in a topic as users write them: an offset, a time, an end, the last few messages."""

from datetime import UTC, datetime
from typing import Literal, TypedDict

from queueber.client.arguments.values import to_number
from queueber.errors import InvalidArgument
from queueber.limits import SECOND_MS
from queueber.model import Position, Start

Time = datetime | float
"""A `datetime`, or seconds since 1970."""
StartAt = int | datetime | Position | Literal["earliest", "latest"]
"""An offset, a time, one of the ends, or a `Position`."""

_SECONDS_END = 1e12
_WORDS = {"earliest": Start.EARLIEST, "latest": Start.LATEST}


class StartOptions(TypedDict, total=False):
    """Where to begin. Give one of the first three; without, it is the earliest message."""

    start: StartAt
    """An offset, a `datetime`, "earliest" or "latest"."""
    time: Time
    """The first message that was published then or later."""
    last: int
    """So many messages before the end."""
    moves: bool
    """Move an offset that is not in the log to the nearest message, instead of `OutOfRange`."""


def to_position(
    *,
    start: StartAt | None = None,
    time: Time | None = None,
    last: int | None = None,
    moves: bool = False,
    default: Position | None = None,
) -> Position:
    given = {"start": start, "time": time, "last": last}
    named = [name for name, value in given.items() if value is not None]
    if len(named) > 1:
        raise InvalidArgument(f"{named[1]}: {named[0]} was given, too; give one of them")
    if not isinstance(moves, bool):
        raise InvalidArgument(f"moves: {moves!r} is neither True nor False")
    if time is not None:
        return Position(Start.TIME, to_time_ms("time", time), moves)
    if last is not None:
        return Position(Start.LAST, to_number("last", last), moves)
    if start is None:
        return Position(moves=moves) if default is None else default
    return _to_start(start, moves)


def _to_start(start: object, moves: bool) -> Position:
    if isinstance(start, Position):
        return start
    if isinstance(start, datetime):
        return Position(Start.TIME, to_time_ms("start", start), moves)
    if isinstance(start, str):
        if start not in _WORDS:
            raise InvalidArgument(
                f"start: {start!r} is neither 'earliest' nor 'latest', nor an offset, nor a time"
            )
        return Position(_WORDS[start], 0, moves)
    return Position(Start.OFFSET, to_number("start", start, what="an offset"), moves)


def to_time_ms(field: str, time: object) -> int:
    """The time in ms since 1970. A `datetime` without a zone would mean another time elsewhere."""
    if isinstance(time, datetime):
        if time.tzinfo is None:
            raise InvalidArgument(
                f"{field}: {time.isoformat()} has no time zone; give one, such as datetime.now(UTC)"
            )
        time = time.astimezone(UTC).timestamp()
    is_number = isinstance(time, int | float) and not isinstance(time, bool)
    if not is_number or not 0 <= time < _SECONDS_END:  # type: ignore[operator]
        raise InvalidArgument(
            f"{field}: {time!r} is neither a datetime nor seconds since 1970, 0 or more"
        )
    return round(time * SECOND_MS)  # type: ignore[operator]
