"""An event loop without sockets and threads. When idle, its time jumps to the next timer."""

import asyncio
from typing import Any

START_MS = 1_700_000_000_000

_RESOLUTION_SECONDS = 0.5e-6
"""Half a microsecond: timers are rounded to the nearest microsecond."""


class SimulatedClock:
    """Virtual time in microseconds, and the server's clock, which may differ from it."""

    def __init__(self) -> None:
        self.now_us = 0
        self.offset_ms = START_MS
        """The offset of the server's clock."""

    def now_ms(self) -> int:
        """The time of the server's clock."""
        return self.now_us // 1000 + self.offset_ms

    def observed_ms(self) -> float:
        """The time of the recorders, which no clock step changes."""
        return self.now_us / 1000


class SimulatedLoop(asyncio.BaseEventLoop):
    def __init__(self, clock: SimulatedClock) -> None:
        super().__init__()
        self._virtual = clock
        self._selector = self
        self._clock_resolution = _RESOLUTION_SECONDS

    def time(self) -> float:
        return self._virtual.now_us / 1e6

    def select(self, timeout: float | None) -> list[Any]:
        """Called by the base class when nothing is ready: jump to the next timer."""
        if timeout is None:
            raise AssertionError("all tasks wait, and there is no timer")
        if timeout > 0:
            self._virtual.now_us += max(1, round(timeout * 1e6))
        return []

    def _process_events(self, event_list: list[Any]) -> None:
        """There are no sockets."""

    def _write_to_self(self) -> None:
        """No other thread has to wake this one."""
