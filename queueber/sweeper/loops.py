"""The background loops: sweep what is due, free disk space, sync once a second, sample.

Each slice of a sweep takes a few milliseconds; other tasks and calls run between two slices. The
reclaimer's slices and the syncer's record run in a thread while calls are served.
"""

import contextlib
import math
from collections.abc import Awaitable, Callable
from typing import Protocol

import trio

from queueber.errors import QueueberError, Unavailable
from queueber.limits import SAMPLE_EVERY_MS, SYNC_EVERY_MS
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
            with trio.move_on_after(math.inf if due_in_ms is None else due_in_ms / 1000):
                await self._wake.wait()
            await self.run_due(service)

    async def look_anew(self, service: Service) -> None:
        """The clock was moved: do what is due now, and look again when something will be."""
        await self.run_due(service)
        self.wake()

    async def run_due(self, service: Service) -> int:
        """Do everything that is due now; returns the number of slices."""
        slices = 0
        # If the disk is full or slow, what is due stays due, and the engine retries it later.
        with contextlib.suppress(Unavailable):
            while service.sweep():
                slices += 1
                await trio.lowlevel.checkpoint()
        return slices


class Reclaimer:
    def __init__(self) -> None:
        self._wake = trio.Event()

    def wake(self) -> None:
        """A queue was deleted, or a load or backup has ended. Call from trio."""
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
        while (name := service.backups.take_stale_checkpoint()) is not None:
            await trio.to_thread.run_sync(service.backups.remove_checkpoint, name)
            slices += 1
        return slices


class Sampler:
    """Takes a point of the histories of queues and topics every 10 seconds."""

    async def run(self, service: Service) -> None:
        while True:
            await self.run_due(service)
            await trio.sleep(SAMPLE_EVERY_MS / 1000)

    async def run_due(self, service: Service) -> int:
        """Take a point of each; returns the number of slices."""
        slices = 0
        for _ in service.measures.sample():
            slices += 1
            await trio.lowlevel.checkpoint()
        return slices


class NotingStore(Protocol):
    """A store that records how far its log is synced."""

    @property
    def is_all_noted(self) -> bool: ...
    def note_synced(self) -> None: ...


class Syncer:
    def __init__(self, store: NotingStore, sync: Callable[[], Awaitable[object]]) -> None:
        """`sync` returns once all writes are durable."""
        self._store = store
        self._sync = sync

    async def run(self) -> None:
        while True:
            await trio.sleep(SYNC_EVERY_MS / 1000)
            await self.run_due()

    async def run_due(self) -> bool:
        """Sync and record, if anything was written; returns whether it did."""
        if self._store.is_all_noted:
            return False
        try:
            await self._sync()
            await trio.to_thread.run_sync(self._store.note_synced)
        except (QueueberError, OSError):
            # A failed sync has already stopped the server. If the disk is full, the record is
            # written the next time.
            return False
        return True
