"""The reclaimer: frees the disk space of deleted queues and ended loads, in the background.

Each slice runs in a thread while calls are served. The server may stop between two slices.
"""

import contextlib

import trio

from queueber.errors import Unavailable
from queueber.service.service import Service


class Reclaimer:
    def __init__(self) -> None:
        self._wake = trio.Event()

    def wake(self) -> None:
        """A queue was deleted, or a load has ended. Call from trio."""
        self._wake.set()

    async def run(self, service: Service) -> None:
        while True:
            self._wake = trio.Event()
            await self.run_due(service)
            await self._wake.wait()

    async def run_due(self, service: Service) -> int:
        """Free all space that can be freed now; returns the number of slices."""
        slices = 0
        # If the disk is full, the rest is done after the next deletion or restart.
        with contextlib.suppress(Unavailable):
            while (prefix := service.queues.next_reclaim()) is not None:
                for reclaim_slice in service.queues.reclaim_slices(prefix):
                    await trio.to_thread.run_sync(reclaim_slice)
                    slices += 1
                service.queues.reclaimed(prefix)
        while (directory := service.loads.take_stale_stage()) is not None:
            await trio.to_thread.run_sync(service.loads.remove_stage, directory)
            slices += 1
        return slices
