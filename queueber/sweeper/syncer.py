"""The syncer: once a second, syncs the log and records how far it is synced.

With `--durability=os` nothing else syncs. With `sync` little is left (the writes of sweeps),
but the next start compares the end of the log with this record.
"""

from collections.abc import Awaitable, Callable
from typing import Protocol

import trio

from queueber.errors import QueueberError
from queueber.limits import SYNC_EVERY_MS


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
