"""Deduplication keys: within a queue's window, a second add with the same key stores nothing.

The window begins with the add that was stored; what became of that item does not matter. With a
window of 0 the queue stores no keys.
"""

from collections.abc import Sequence
from typing import Any

from queueber.db.families import Family
from queueber.db.records.keys import text_digest
from queueber.db.records.remembered import (
    FORGET_KEY,
    decode_key_entry,
    encode_key_entry,
    groups_to_forget,
    split_digests,
)
from queueber.engine.kernel.transaction import Transaction
from queueber.engine.records.retention import Retention
from queueber.errors import Unavailable
from queueber.ids import ItemId


class DedupKeys:
    __slots__ = ("_queue_name", "_retention", "is_frozen")

    def __init__(self, queue_name: str, retention: Retention) -> None:
        self._queue_name = queue_name
        self._retention = retention
        self.is_frozen = False
        """Whether a load with keys is being committed: until then nobody else may add a key."""
        retention.register(FORGET_KEY, _forget)

    def look_up(self, tx: Transaction[Any], keys: Sequence[str], window_ms: int) -> "KeyLookup":
        """Which of the items with these keys are to be stored."""
        if window_ms and self.is_frozen:
            raise Unavailable(
                f"a load with keys is being committed in queue {self._queue_name!r}; send the call "
                "again in a moment"
            )
        return KeyLookup(tx, self._retention, keys, window_ms)


class KeyLookup:
    """The keys of one add."""

    def __init__(
        self, tx: Transaction[Any], retention: Retention, keys: Sequence[str], window_ms: int
    ) -> None:
        self._retention = retention
        self._window_ms = window_ms
        self._digests = [text_digest(key) if key else b"" for key in keys]
        self.firsts: list[int | ItemId | None] = [None] * len(keys)
        """For each item: None if it is to be stored. Else the item whose duplicate it is: the id of
        a stored one, or the position of one in the same call."""
        if window_ms:
            self._look_up(tx)

    def _look_up(self, tx: Transaction[Any]) -> None:
        distinct = list({digest: None for digest in self._digests if digest})
        found = tx.store.get_many(Family.KEYS, [tx.prefix + digest for digest in distinct])
        known: dict[bytes, int | ItemId] = {}
        for digest, entry in zip(distinct, found, strict=True):
            if entry is not None:
                item_id, forget_at_ms = decode_key_entry(entry)
                if forget_at_ms > tx.now_ms:
                    known[digest] = item_id
        for position, digest in enumerate(self._digests):
            if digest:
                self.firsts[position] = known.get(digest)
                known.setdefault(digest, position)

    def store(self, tx: Transaction[Any], stored: list[tuple[int, ItemId]]) -> None:
        """Store the keys of items, given as position in the call and id."""
        if not self._window_ms:
            return
        forget_at_ms = tx.now_ms + self._window_ms
        keyed = [(d, item_id) for at, item_id in stored if (d := self._digests[at])]
        digests = [digest for digest, _ in keyed]
        entries = [encode_key_entry(item_id, forget_at_ms) for _, item_id in keyed]
        tx.batch.put_columns(Family.KEYS, [tx.prefix + digest for digest in digests], entries)
        for group in groups_to_forget(keyed):
            self._retention.remember(tx, forget_at_ms, *group)


def _forget(tx: Transaction[Any], at_ms: int, digests: bytes) -> None:
    """Delete keys whose window is over; one that was added anew has a later window."""
    keys = [tx.prefix + digest for digest in split_digests(digests)]
    for key, entry in zip(keys, tx.store.get_many(Family.KEYS, keys), strict=True):
        if entry is not None and decode_key_entry(entry)[1] == at_ms:
            tx.batch.delete(Family.KEYS, key)
