"""What items have of their own, as users write it, turned into `ItemOptions`."""

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import TypedDict, TypeVar

from queueber.client.arguments.moments import to_delay
from queueber.client.arguments.values import Seconds, one_for_each, to_ms, to_number, to_some_ms
from queueber.errors import InvalidArgument
from queueber.limits import (
    ATTEMPTS_CEILING,
    DELAY_MS_MAX,
    ITEM_BACKOFF_STEPS_MAX,
    ITEM_TIMEOUT_MS_MAX,
    SECOND_MS,
)
from queueber.model import NO_OPTIONS, ItemOptions

T = TypeVar("T")

_PLURALS = {"attempts": "attempts", "timeout": "timeouts", "expires": "times of expiry"}

Attempts = int | Sequence[int | None] | None
Delays = Seconds | Sequence[Seconds]
OwnBackoff = Delays | Sequence[Delays | None] | None
OwnTimeout = Seconds | Sequence[Seconds | None] | None
Moment = Seconds | datetime
Expires = Moment | Sequence[Moment | None] | None


def to_options(
    count: int, attempts: object, backoff: object, timeout: object, expires: object
) -> list[ItemOptions]:
    """One for each item; empty when no item has any."""
    if attempts is None and backoff is None and timeout is None and expires is None:
        return []
    columns = zip(
        _column("attempts", attempts, _to_attempts, count),
        _to_backoffs(backoff, count),
        _column("timeout", timeout, _to_timeout, count),
        _column("expires", expires, _to_expires, count),
        strict=True,
    )
    # Many items have the same, and are sent as one.
    known = {NO_OPTIONS: NO_OPTIONS}
    options = [known.setdefault(each, each) for each in (ItemOptions(*own) for own in columns)]
    return options if len(known) > 1 else []


class OwnOptions(TypedDict, total=False):
    """Of an item that the server adds at a time of its own."""

    attempts: int | None
    backoff: Delays | None
    timeout: Seconds | None
    expires: Seconds | None


def to_own_options(
    attempts: object = None, backoff: object = None, timeout: object = None, expires: object = None
) -> ItemOptions:
    """Of an item that the server adds at a time of its own: that expires in seconds from then."""
    if isinstance(expires, datetime):
        raise InvalidArgument("expires: a time was given; give seconds, counted from the add")
    return ItemOptions(
        _to_attempts(attempts), _to_backoff(backoff), _to_timeout(timeout), _to_expires(expires)
    )


def check_expiry(options: Sequence[ItemOptions], delays_ms: Sequence[int]) -> None:
    """No item may expire before its delay ends; either list is empty when no item has any."""
    for own, delay_ms in zip(options, delays_ms, strict=False):
        if 0 < own.expires_ms <= delay_ms:
            raise InvalidArgument(
                f"expires: an item that expires after {own.expires_ms / SECOND_MS:.12g} s has a "
                f"delay of {delay_ms / SECOND_MS:.12g} s; let it expire later"
            )


def _column(field: str, given: object, convert: Callable[[object], T], count: int) -> list[T]:
    """What all items have, or a list with one for each."""
    if isinstance(given, Iterable) and not isinstance(given, str | bytes):
        return one_for_each(field, _PLURALS[field], [convert(each) for each in given], count)
    return [convert(given)] * count


def _to_attempts(attempts: object) -> int | None:
    """None: as the queue says."""
    return None if attempts is None else to_number("attempts", attempts, limit=ATTEMPTS_CEILING)


def _to_timeout(timeout: object) -> int:
    """0: as the worker says."""
    return 0 if timeout is None else to_some_ms("timeout", timeout, ITEM_TIMEOUT_MS_MAX)


def _to_expires(expires: object) -> int:
    """0: it does not expire."""
    if expires is None:
        return 0
    if not isinstance(expires, datetime):
        return to_some_ms("expires", expires, DELAY_MS_MAX)
    left = to_delay(expires, "expires")
    if not left:
        raise InvalidArgument(f"expires: {expires.isoformat(' ')} has passed")
    return to_some_ms("expires", left)


def _to_backoffs(backoff: object, count: int) -> list[tuple[int, ...]]:
    """Delays for all items, or a list with those of each."""
    if isinstance(backoff, Iterable) and not isinstance(backoff, str | bytes):
        listed = list(backoff)
        if any(each is None or isinstance(each, list | tuple) for each in listed):
            own = [_to_backoff(each) for each in listed]
            return one_for_each("backoff", "lists of delays", own, count)
        backoff = listed
    return [_to_backoff(backoff)] * count


def _to_backoff(backoff: object) -> tuple[int, ...]:
    """Empty: as the queue says."""
    if backoff is None:
        return ()
    if isinstance(backoff, str | bytes):
        raise InvalidArgument(f"backoff: {backoff!r} is neither seconds nor a list of them")
    listed = list(backoff) if isinstance(backoff, Iterable) else [backoff]
    if not 1 <= len(listed) <= ITEM_BACKOFF_STEPS_MAX:
        raise InvalidArgument(
            f"backoff: it has {len(listed)} delays; give 1 to {ITEM_BACKOFF_STEPS_MAX}"
        )
    return tuple(to_ms("backoff", each, DELAY_MS_MAX) for each in listed)
