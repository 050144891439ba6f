"""A loop without sockets and threads, whose time jumps to the next timer when nothing is left."""

import asyncio
from typing import Any

START_MS = 1_700_000_000_000

_RESOLUTION_SECONDS = 0.5e-6
"""A timer rounded to the nearest microsecond is due in it."""


class SimulatedClock:
    """Virtual time in microseconds, and a server's clock that may be set apart from it."""

    def __init__(self) -> None:
        self.now_us = 0
        self.offset_ms = START_MS
        """Of the server's clock."""

    def now_ms(self) -> int:
        """As the server reads it."""
        return self.now_us // 1000 + self.offset_ms

    def observed_ms(self) -> float:
        """As observers read it, whatever was done to the server's clock."""
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
        """What the base class asks when nothing is left to do before a timer."""
        if timeout is None:
            raise AssertionError("everybody waits, and nothing will ever happen")
        if timeout > 0:
            self._virtual.now_us += max(1, round(timeout * 1e6))
        return []

    def _process_events(self, event_list: list[Any]) -> None:
        """There are none."""

    def _write_to_self(self) -> None:
        """There is no other thread that would have to wake this one."""
