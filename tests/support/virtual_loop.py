"""An asyncio loop on virtual time: when it has nothing to do, it jumps to its next timer.

Its time is that of a `ManualClock`, so a timer and the service's own clock always agree, and a test
of a wait of five minutes takes no time at all. Threads are real: with a timer ahead and nothing to
do, the loop jumps although a thread may be about to call in. A test that has a thread at work holds
time still with `time_stands_still`.
"""

import asyncio
import contextlib
import selectors
from collections.abc import Coroutine, Iterator
from typing import Any, TypeVar

from queueber.clock import ManualClock

T = TypeVar("T")

_REAL_SECONDS_MAX = 10.0
"""How long a thread may take to call in before the loop gives up on it."""


class _JumpingSelector(selectors.DefaultSelector):
    def __init__(self, clock: ManualClock) -> None:
        super().__init__()
        self._clock = clock
        self.stands_still = False

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is not None and timeout <= 0:
            return super().select(0)
        if timeout is not None and not self.stands_still:
            found = super().select(0)
            if not found:
                self._clock.advance(max(1, round(timeout * 1000)))
            return found
        found = super().select(_REAL_SECONDS_MAX)
        if not found:
            raise AssertionError("the loop waits, and nothing will ever happen")
        return found


class VirtualLoop(asyncio.SelectorEventLoop):
    def __init__(self, clock: ManualClock) -> None:
        self._clock = clock
        self._start_ms = clock.now_ms()
        self._jumping = _JumpingSelector(clock)
        super().__init__(self._jumping)
        # A timer rounded to the nearest millisecond is due in it.
        self._clock_resolution = 0.0005

    def time(self) -> float:
        return (self._clock.now_ms() - self._start_ms) / 1000

    def timers(self) -> int:
        """How many timers are set."""
        return sum(not timer.cancelled() for timer in self._scheduled)  # type: ignore[attr-defined]

    @contextlib.contextmanager
    def time_stands_still(self) -> Iterator[None]:
        """Wait for threads in real time instead of jumping."""
        self._jumping.stands_still = True
        try:
            yield
        finally:
            self._jumping.stands_still = False


def run_virtually(clock: ManualClock, main: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end on a virtual loop."""
    with asyncio.Runner(loop_factory=lambda: VirtualLoop(clock)) as runner:
        return runner.run(main)


async def turns(count: int = 3) -> None:
    """Let every task that can go on do so, without time passing."""
    for _ in range(count):
        await asyncio.sleep(0)
