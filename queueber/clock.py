"""The clock: milliseconds since the epoch, without jumps."""

import time
from collections.abc import Awaitable, Callable
from typing import Protocol


class Clock(Protocol):
    def now_ms(self) -> int: ...


class MovedClock(Clock, Protocol):
    """A clock that a test moves while the server runs; see `queueber.testing`."""

    async def run(self, do_due: Callable[[], Awaitable[None]]) -> None:
        """Without end, in trio: move when told to, and then do what has become due."""


class SystemClock:
    """The wall clock at the start of the process, plus the time that has passed since.

    Leases and delays are lengths of time, so a step of the wall clock must neither expire a lease
    nor prolong one. A restart reads the wall clock again.
    """

    def __init__(self) -> None:
        self._offset_ns = time.time_ns() - time.monotonic_ns()

    def now_ms(self) -> int:
        return (time.monotonic_ns() + self._offset_ns) // 1_000_000


seconds = time.perf_counter
"""A clock for durations alone. Every call reads it twice, so there is no function around it."""


class ManualClock:
    """A clock that moves only by `advance`, for tests and simulations."""

    def __init__(self, now_ms: int = 1_700_000_000_000) -> None:
        self._now_ms = now_ms

    def now_ms(self) -> int:
        return self._now_ms

    def advance(self, ms: int) -> None:
        self._now_ms += ms
