"""Sequences: a number for each message, which rises over all topics of the server."""

from typing import Any

from queueber.db.families import Family
from queueber.db.store.contract import Reads
from queueber.engine.kernel.transaction import Transaction
from queueber.limits import ID_BYTES

PUBLISHED_KEY = b"published"
"""In family `default`: the last sequence (8 bytes), and the id of its message."""


class Sequences:
    def __init__(self, store: Reads) -> None:
        published = store.get(Family.DEFAULT, PUBLISHED_KEY) or bytes(8 + ID_BYTES)
        self.last = int.from_bytes(published[:8])
        self.last_id = published[8:]
        """The id of the last message when the store was opened."""

    def take(self, tx: Transaction[Any], count: int, last_id: bytes) -> int:
        """The first of the next `count` sequences; `last_id` is that of their last message."""
        last, _, is_awaited = tx.pending.get(self, (self.last, b"", False))
        if not is_awaited:
            tx.before_write(self._write, tx)
        tx.pending[self] = (last + count, last_id, True)
        return int(last) + 1

    def _write(self, tx: Transaction[Any]) -> None:
        """Called again if messages are appended after it: events are, before the write."""
        last, last_id, _ = tx.pending[self]
        tx.pending[self] = (last, last_id, False)
        tx.batch.put(Family.DEFAULT, PUBLISHED_KEY, last.to_bytes(8) + last_id)
        tx.after_write(self._written, last)

    def _written(self, last: int) -> None:
        self.last = last
