"""The syncer: once a second, sync what nobody waited for, and note how far that went.

With `--durability=os` it is the only one who syncs. With `sync` there is little left to sync for
it (what sweeps wrote), but the note is what a start holds the end of the log against.
"""

from collections.abc import Awaitable, Callable

import trio

from queueber.db.store.rocks import RocksStore
from queueber.errors import QueueberError
from queueber.limits import SYNC_EVERY_MS


class Syncer:
    def __init__(self, store: RocksStore, sync: Callable[[], Awaitable[object]]) -> None:
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
