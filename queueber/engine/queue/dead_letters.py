"""Dead letters: items that no poll gets any more, until somebody redrives or deletes them."""

from collections.abc import Sequence
from typing import Any, cast

from queueber.db.families import Family
from queueber.db.records.keys import PREFIX_BYTES, HeldItem, decode_dead, encode_dead, prefix_end
from queueber.db.store.contract import Store
from queueber.engine.kernel.transaction import Transaction
from queueber.engine.queue.leases import held_items
from queueber.ids import ItemId


class DeadLetters:
    """The dead letters of one queue."""

    __slots__ = ("_prefix", "_store", "low")

    def __init__(self, store: Store, prefix: bytes) -> None:
        self._store = store
        self._prefix = prefix
        self.low = ItemId(b"")
        """No dead letter has a lower id: a scan of them starts here."""

    def get(self, ids: Sequence[bytes]) -> list[HeldItem]:
        """Those of the items that are dead letters."""
        found = self._store.get_many(Family.DEAD, [self._prefix + item_id for item_id in ids])
        return held_items(ids, [None if each is None else decode_dead(each)[2] for each in found])

    def first(self, limit: int) -> list[HeldItem]:
        """The first dead letters in order of id."""
        stop = prefix_end(self._prefix)
        found = self._store.scan(Family.DEAD, self._prefix + self.low, stop, limit)
        letters = [(key[PREFIX_BYTES:], decode_dead(value)[2]) for key, value in found]
        return cast("list[HeldItem]", letters)

    def put(self, tx: Transaction[Any], letters: list[HeldItem], reasons: Sequence[int]) -> None:
        """Items die now; `reasons` has one for each."""
        for (item_id, mark), reason in zip(letters, reasons, strict=True):
            tx.batch.put(Family.DEAD, self._prefix + item_id, encode_dead(tx.now_ms, reason, mark))
        tx.counters.dead += len(letters)
        tx.counters.died_total += len(letters)
        tx.after_write(self._set_low, min(self.low, min(letters)[0]))

    def drop(
        self, tx: Transaction[Any], letters: list[HeldItem], *, are_first: bool = False
    ) -> None:
        """Delete the entries of dead letters. `are_first` if no other has a lower id."""
        tx.batch.delete_many(Family.DEAD, [self._prefix + item_id for item_id, _ in letters])
        tx.counters.dead -= len(letters)
        if are_first and letters:
            tx.after_write(self._set_low, letters[-1][0])

    def _set_low(self, item_id: ItemId) -> None:
        self.low = item_id
