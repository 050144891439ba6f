"""Deduplication keys: within a queue's window, a second add with the same key stores nothing.

The window begins with the add that was stored; what became of that item does not matter. With a
window of 0 the queue stores no keys.

An item is found by its key also after that, as long as it is in the queue: when the window is over,
the entry is kept if the block is there that has the item, and looked at again later. Blocks end
soon after their items do, and one look is for all keys of a block.
"""

from collections.abc import Callable, Sequence
from typing import Any

from queueber.db.families import Family
from queueber.db.records.keys import text_digest
from queueber.db.records.remembered import (
    FORGET_KEY,
    decode_key_entry,
    encode_kept_key_entry,
    encode_key_entry,
    groups_to_forget,
    known_item,
    split_digests,
)
from queueber.engine.kernel.transaction import Transaction
from queueber.engine.records.retention import Retention
from queueber.errors import Unavailable
from queueber.ids import ItemId
from queueber.limits import KEPT_KEYS_LOOK_MS

Stored = Callable[[Sequence[ItemId]], set[ItemId]]
"""Of items in order those whose block is there."""


class DedupKeys:
    __slots__ = ("_queue_name", "_retention", "_stored", "is_frozen")

    def __init__(self, queue_name: str, retention: Retention, stored: Stored | None = None) -> None:
        """Without `stored` keys are forgotten when their window is over."""
        self._queue_name = queue_name
        self._retention = retention
        self._stored = stored
        self.is_frozen = False
        """Whether a load with keys is being committed: until then nobody else may add a key."""
        retention.register(FORGET_KEY, self._forget)

    def look_up(self, tx: Transaction[Any], keys: Sequence[str], window_ms: int) -> "KeyLookup":
        """Which of the items with these keys are to be stored."""
        if window_ms and self.is_frozen:
            raise Unavailable(
                f"a load with keys is being committed in queue {self._queue_name!r}; send the call "
                "again in a moment"
            )
        return KeyLookup(tx, self._retention, keys, window_ms)

    def _forget(self, tx: Transaction[Any], at_ms: int, digests: bytes) -> None:
        """Delete keys whose window is over, unless their items may be in the queue; one that was
        added anew has a later window."""
        due: list[tuple[ItemId, bytes]] = []
        # Two entries of one time may name a key: when it was added anew in the very millisecond in
        # which it was kept for as long as a window.
        done: set[bytes] = tx.pending.setdefault(self, set())
        asked = split_digests(digests)
        for digest, entry in zip(
            asked, tx.store.get_many(Family.KEYS, [tx.prefix + each for each in asked]), strict=True
        ):
            if entry is not None:
                item_id, forget_at_ms = decode_key_entry(entry)
                if forget_at_ms == at_ms and digest not in done:
                    done.add(digest)
                    due.append((item_id, digest))
        due.sort()
        stored = set() if self._stored is None else self._stored([item_id for item_id, _ in due])
        kept = [(digest, item_id) for item_id, digest in due if item_id in stored]
        gone = [tx.prefix + digest for item_id, digest in due if item_id not in stored]
        tx.batch.delete_many(Family.KEYS, gone)
        look_at_ms = tx.now_ms + KEPT_KEYS_LOOK_MS
        for digest, item_id in kept:
            entry = encode_kept_key_entry(item_id, look_at_ms)
            tx.batch.put(Family.KEYS, tx.prefix + digest, entry)
        for group in groups_to_forget(kept):
            self._retention.remember(tx, look_at_ms, *group)


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
                item_id = known_item(entry, tx.now_ms)
                if item_id is not None:
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
