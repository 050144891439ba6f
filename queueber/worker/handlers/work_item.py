"""An item at work: the lease that holds it, one call of the handler with it, how the call ends."""

import inspect
import traceback
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from datetime import timedelta
from enum import Enum
from typing import Any

from queueber.client import Item
from queueber.errors import InvalidArgument
from queueber.limits import DELAY_MS_MAX, SECOND_MS
from queueber.worker.handlers.error_text import (
    FRAMES_KEPT,
    FRAMES_KEPT_LATE,
    behind,
    calls,
    headline,
    truncated,
)

Duration = float | timedelta
"""A number of seconds or a `timedelta`."""

TIMEOUT_SECONDS_MAX = 7 * 24 * 3600


@dataclass(slots=True, eq=False)
class HeldLease:
    """A lease of this pool. The heartbeat extends it while `unreported` is above zero."""

    id: bytes
    unreported: int
    """Items of the lease whose outcome the server has not confirmed yet."""
    extended_at: float
    is_lost: bool = False
    """The lease ended before its items were reported; other workers may have them."""
    source: str = ""
    """The queue that the items are of, or "topic/group"."""


class WorkItem(Item):
    """An item as a handler gets it: an `Item` with `value` and `is_lost`."""

    __slots__ = ("__weakref__", "lease", "value")

    lease: HeldLease
    value: Any
    """What the deserializer returned for the contents; without a deserializer, the contents."""

    def __init__(self, item: Item, lease: HeldLease) -> None:
        super().__init__(
            item.id,
            item.contents,
            item.attempt,
            item.key,
            item.attributes,
            item.batch,
            item._lease,
            item.deliveries,
            item.timeout,
        )
        self.lease = lease
        self.value = item.contents

    @property
    def is_lost(self) -> bool:
        """Whether the lease has ended: the server will refuse the result, and another worker may
        already have the item."""
        return self.lease.is_lost

    @property
    def source(self) -> str:
        """The queue that it is of; for a message "topic/group"."""
        return self.lease.source

    @property
    def job(self) -> str:
        """The kind of job, if its worker is that of a `queueber.App`; else empty."""
        return ""

    # Compared by identity: a pool may hold one item twice, under a lost lease and under a new one.
    __hash__ = object.__hash__

    def __eq__(self, other: object) -> bool:
        return self is other


# --- how a call ends ------------------------------------------------------------------------------


def to_seconds(
    argument: str, duration: Duration, low: float = 0, high: float = TIMEOUT_SECONDS_MAX
) -> float:
    """Raises `InvalidArgument`, which names the argument, for what is not within the range."""
    seconds = duration.total_seconds() if isinstance(duration, timedelta) else duration
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        raise InvalidArgument(f"{argument}: {seconds!r} is not a number of seconds or a timedelta")
    if not low <= seconds <= high:
        raise InvalidArgument(f"{argument}: {seconds} is outside {low:g} to {high:g} seconds")
    return seconds


class Retry(Exception):
    """Raised by a handler: the attempt failed; try the item again after `delay`.

    `delay` is a number of seconds or a `timedelta`. Without it the backoff of the queue decides.
    Every try counts as an attempt.
    """

    def __init__(self, reason: str = "", *, delay: Duration | None = None) -> None:
        super().__init__(reason)
        delay_max = DELAY_MS_MAX // SECOND_MS
        self.delay = None if delay is None else to_seconds("delay", delay, high=delay_max)


@dataclass(frozen=True, slots=True)
class Failed:
    """The attempt failed. The settings of the queue decide whether the item is retried."""

    error: str
    delay: float | None = None
    is_late: bool = False
    """The handler ran longer than its time limit."""


class Unfinished(Enum):
    """Why there is neither a result nor a failure."""

    NOT_BEGUN = "the lease was lost before a handler took the item"
    UNKNOWN_KIND = "the worker has no job of this kind"
    CANCELLED = "the pool cancelled the handler"


Outcome = bytes | Failed | Unfinished


def failure_of(error: BaseException) -> Failed:
    """The type of the error, its message, its innermost calls and what is behind it, truncated to
    16 KiB.

    Never raises, even if `str(error)` does: nobody would report the item then.
    """
    told = headline(error)
    try:
        if isinstance(error, Retry):
            return Failed(truncated(told), error.delay)
        lines = [told, *calls(traceback.extract_tb(error.__traceback__)), *behind(error)]
        return Failed(truncated("\n".join(lines)))
    except BaseException:  # noqa: BLE001  code of the user, such as a loader of modules
        return Failed(truncated(told))


def failed_with(told: str, stack: traceback.StackSummary, *, is_late: bool = False) -> Failed:
    """A failure with the innermost calls of the stack that are not the worker's own."""
    lines = calls(stack, FRAMES_KEPT_LATE if is_late else FRAMES_KEPT)
    return Failed(truncated("\n".join([told, *lines])), is_late=is_late)


# --- one call of the handler ----------------------------------------------------------------------

Serializer = Callable[[Any], bytes]
Deserializer = Callable[[bytes], Any]
OnError = Callable[[WorkItem, BaseException], None]
"""Learns of the error before the item is reported. It does not raise."""


def to_result(returned: object, serializer: Serializer | None) -> bytes:
    """The result that is stored for what a handler returned; `TypeError` if there is none."""
    if returned is None:
        return b""
    if isinstance(returned, bytes | bytearray | memoryview):
        return _plain(returned)
    check_returned(returned)
    kind = type(returned).__name__
    if serializer is None:
        raise TypeError(
            f"the handler returned {kind}; return bytes or None, "
            "or give the worker a serializer such as 'json'"
        )
    serialized = serializer(returned)
    if not isinstance(serialized, bytes):
        raise TypeError(f"the serializer made {type(serialized).__name__} of {kind}, not bytes")
    return _plain(serialized)


def check_returned(returned: object) -> None:
    """Raises `TypeError` for what has not run yet."""
    if inspect.iscoroutine(returned):
        returned.close()
        raise TypeError("the handler returned a coroutine; declare it with 'async def'")
    if inspect.isgenerator(returned) or inspect.isasyncgen(returned):
        raise TypeError("the handler returned a generator, which runs nothing; use no 'yield'")


def _plain(result: bytes | bytearray | memoryview) -> bytes:
    """Exactly `bytes`: a subclass could override `__bytes__`."""
    return bytes(memoryview(result))


def make_call(
    handler: Callable[[WorkItem], object],
    serializer: Serializer | None,
    deserializer: Deserializer | None,
    on_error: OnError | None = None,
) -> Callable[[WorkItem], bytes | Failed]:
    """A function that never raises: whatever the handler raises, even SystemExit, is a failure."""

    def call(item: WorkItem) -> bytes | Failed:
        try:
            if deserializer is not None:
                item.value = deserializer(item.contents)
            returned = handler(item)
            return returned if type(returned) is bytes else to_result(returned, serializer)
        except BaseException as error:  # noqa: BLE001  every error belongs to its item
            if on_error is not None:
                on_error(item, error)
            return failure_of(error)

    return call


def make_async_call(
    handler: Callable[[WorkItem], Awaitable[object]],
    serializer: Serializer | None,
    deserializer: Deserializer | None,
    on_error: OnError | None,
    is_cancellation: Callable[[BaseException], bool],
) -> Callable[[WorkItem], Coroutine[Any, Any, bytes | Failed]]:
    """A coroutine that raises only when the pool cancels it, as `is_cancellation` tells."""

    async def call(item: WorkItem) -> bytes | Failed:
        try:
            if deserializer is not None:
                item.value = deserializer(item.contents)
            returned = await handler(item)
            return returned if type(returned) is bytes else to_result(returned, serializer)
        except BaseException as error:
            if is_cancellation(error):
                raise
            if on_error is not None:
                on_error(item, error)
            return failure_of(error)

    return call
