"""Quotas: what one caller may use, over all its connections.

Calls and bytes are rates. A call above the rate is refused and may be sent again a moment later.
Bytes, of calls and answers alike, are counted when they have passed; a caller that has used too
many must wait until that is made up for. Queues and topics are counted when one is to be created:
all that exist under the names that the caller may administer, whoever created them.
"""

from collections.abc import Callable
from dataclasses import dataclass

from queueber.auth.buckets import Bucket, Recent
from queueber.clock import Clock
from queueber.errors import ResourceExhausted, Unavailable
from queueber.limits import SECOND_MS

_CALLERS_MAX = 10_000
"""Callers whose use is remembered, about 500 bytes each."""


@dataclass(frozen=True, slots=True)
class QuotaLimits:
    """0: no limit."""

    calls_per_second: int = 0
    bytes_per_second: int = 0
    queues: int = 0
    topics: int = 0


class Usage:
    """What one caller has used."""

    __slots__ = ("_bytes", "_calls", "_clock", "_counts", "limits")

    def __init__(self, limits: QuotaLimits, clock: Clock) -> None:
        self.limits = limits
        self._clock = clock
        now_ms = clock.now_ms()
        calls, size = limits.calls_per_second, limits.bytes_per_second
        self._calls = Bucket(calls, calls, now_ms) if calls else None
        self._bytes = Bucket(size, size, now_ms) if size else None
        self._counts: dict[str, tuple[int, int]] = {}
        """How many queues and topics there were, and when they were counted."""

    def begin_call(self) -> None:
        """Refuse a call above the rate."""
        now_ms = self._clock.now_ms()
        if self._bytes is not None and (wait_ms := self._bytes.wait_ms(0, now_ms)):
            raise Unavailable(
                f"the caller has used more than {self.limits.bytes_per_second} bytes a second, its "
                "limit; send the call again in a moment",
                retry_after_ms=wait_ms,
            )
        if self._calls is not None and not self._calls.take(now_ms):
            raise Unavailable(
                f"the caller has made {self.limits.calls_per_second} calls in a second, its limit; "
                "send the call again in a moment",
                retry_after_ms=self._calls.wait_ms(1, now_ms),
            )

    def moved(self, count: int) -> None:
        """So many bytes have come from the caller, or have gone to it."""
        if self._bytes is not None:
            self._bytes.use(count)

    def check_may_create(self, kind: str, count: Callable[[int], int]) -> None:
        """A queue or topic is about to be created. `count` counts those that exist, up to a limit;
        it is asked once a second, and in between new ones are added."""
        most = self.limits.queues if kind == "queue" else self.limits.topics
        if not most:
            return
        now_ms = self._clock.now_ms()
        known, counted_at_ms = self._counts.get(kind, (0, -SECOND_MS))
        if now_ms - counted_at_ms >= SECOND_MS:
            known, counted_at_ms = count(most), now_ms
        if known >= most:
            self._counts[kind] = known, counted_at_ms
            raise ResourceExhausted(
                f"there are {known} {kind}s under the names that the caller may administer; its "
                f"limit is {most}, delete some"
            )
        self._counts[kind] = known + 1, counted_at_ms


class Quotas:
    def __init__(self, limits: QuotaLimits, clock: Clock) -> None:
        self._usages = Recent(lambda: Usage(limits, clock), _CALLERS_MAX)
        self._has_limits = limits != QuotaLimits()

    def of(self, caller: str) -> Usage | None:
        """None if nothing is limited."""
        return self._usages.get(caller) if self._has_limits else None
