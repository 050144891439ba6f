"""The sweeper: sleeps until something is due, and does it in slices.

Idle, it sleeps without end: nothing is scanned, no timer runs. A slice is a few milliseconds;
between two of them every other task and call has its turn.
"""

import contextlib

import trio

from queueber.errors import Unavailable
from queueber.service.service import Service


class Sweeper:
    def __init__(self) -> None:
        self._wake = trio.Event()

    def wake(self) -> None:
        """Something is due earlier than it was when the sweeper went to sleep. Call from trio."""
        self._wake.set()

    async def run(self, service: Service) -> None:
        while True:
            self._wake = trio.Event()
            due_in_ms = service.next_due_in_ms()
            with trio.move_on_after(trio_seconds(due_in_ms)):
                await self._wake.wait()
            await self.run_due(service)

    async def run_due(self, service: Service) -> int:
        """Do all that is due now; returns the number of slices that it took."""
        slices = 0
        # When the disk is full or slow, what is due stays due, and the engine looks again itself.
        with contextlib.suppress(Unavailable):
            while service.sweep():
                slices += 1
                await trio.lowlevel.checkpoint()
        return slices


def trio_seconds(ms: int | None) -> float:
    return float("inf") if ms is None else ms / 1000
