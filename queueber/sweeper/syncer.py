"""The syncer: once a second, sync what no call waited for, and note how far that went.

With `--durability=os` nothing else syncs. With `sync` there is little left to sync (what sweeps
wrote), but the next start compares the end of the log with the note.
"""

from collections.abc import Awaitable, Callable
from typing import Protocol

import trio

from queueber.errors import QueueberError
from queueber.limits import SYNC_EVERY_MS


class NotingStore(Protocol):
    """A store that remembers how far its log was synced."""

    @property
    def is_all_noted(self) -> bool: ...
    def note_synced(self) -> None: ...


class Syncer:
    def __init__(self, store: NotingStore, sync: Callable[[], Awaitable[object]]) -> None:
        """`sync` returns once all that was written is durable."""
        self._store = store
        self._sync = sync

    async def run(self) -> None:
        while True:
            await trio.sleep(SYNC_EVERY_MS / 1000)
            await self.run_due()

    async def run_due(self) -> bool:
        """Sync and note, if anything was written; whether that was done."""
        if self._store.is_all_noted:
            return False
        try:
            await self._sync()
            await trio.to_thread.run_sync(self._store.note_synced)
        except (QueueberError, OSError):
            # A failed sync has stopped the server already; a note that finds no room on a full disk
            # is written the next time.
            return False
        return True
