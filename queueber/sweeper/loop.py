"""The sweeper: sleeps until something is due, then does it in slices.

If nothing is due, it sleeps without a timer and scans nothing. A slice takes a few milliseconds;
other tasks and calls run between two slices.
"""

import contextlib

import trio

from queueber.errors import Unavailable
from queueber.service.service import Service


class Sweeper:
    def __init__(self) -> None:
        self._wake = trio.Event()

    def wake(self) -> None:
        """Something is due earlier than the sweeper will wake. Call from trio."""
        self._wake.set()

    async def run(self, service: Service) -> None:
        while True:
            self._wake = trio.Event()
            due_in_ms = service.next_due_in_ms()
            with trio.move_on_after(trio_seconds(due_in_ms)):
                await self._wake.wait()
            await self.run_due(service)

    async def run_due(self, service: Service) -> int:
        """Do everything that is due now; returns the number of slices."""
        slices = 0
        # If the disk is full or slow, what is due stays due, and the engine retries it later.
        with contextlib.suppress(Unavailable):
            while service.sweep():
                slices += 1
                await trio.lowlevel.checkpoint()
        return slices


def trio_seconds(ms: int | None) -> float:
    return float("inf") if ms is None else ms / 1000
