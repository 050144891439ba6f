"""Dead letters: items that no poll gets any more, until somebody redrives or deletes them."""

from collections.abc import Sequence
from operator import itemgetter
from typing import Any

from queueber.db.families import Family
from queueber.db.records.keys import PREFIX_BYTES, last_id_end, prefix_end
from queueber.db.records.runs import (
    Run,
    by_entry,
    count_items,
    cut,
    decode_dead,
    encode_dead,
    join,
    pick,
)
from queueber.db.store.contract import Store
from queueber.engine.kernel.transaction import Transaction
from queueber.engine.queue.blocks import Blocks
from queueber.ids import ItemId

_Letter = tuple[int, int, Run]
"""When and why the items of a run died, and the run."""


class DeadLetters:
    """The dead letters of one queue."""

    __slots__ = ("_blocks", "_prefix", "_store", "low")

    def __init__(self, store: Store, prefix: bytes, blocks: Blocks) -> None:
        self._store = store
        self._prefix = prefix
        self._blocks = blocks
        self.low = ItemId(b"")
        """No entry of a dead letter has a lower id: a scan of them starts here."""

    def put(self, tx: Transaction[Any], runs: Sequence[Run], reason: int) -> None:
        """Items die now, all for one reason."""
        self._write(tx, [(tx.now_ms, reason, run) for run in join(sorted(runs))])
        tx.counters.died_total += count_items(runs)

    def take(self, tx: Transaction[Any], ids: Sequence[bytes]) -> list[Run]:
        """Take those of the items that are dead letters out of the family."""
        if not tx.counters.dead:
            return []
        blocks = self._blocks.reader()
        taken: list[Run] = []
        for letter, positions in by_entry(ids, self._get, itemgetter(2)).items():
            died_at_ms, reason, run = letter
            picked, left = pick(run, positions, blocks.sizes(run))
            self._delete(tx, [run])
            self._write(tx, [(died_at_ms, reason, each) for each in left])
            taken += picked
        return taken

    def take_first(self, tx: Transaction[Any], limit: int) -> list[Run]:
        """Take the first dead letters in order of id, up to `limit` items."""
        stop = prefix_end(self._prefix)
        taken: list[Run] = []
        for key, value in self._store.scan(Family.DEAD, self._prefix + self.low, stop, limit):
            if limit == 0:
                break
            died_at_ms, reason, run = decode_dead(key[PREFIX_BYTES:], value)
            self._delete(tx, [run])
            if run.count > limit:
                run, rest = cut(run, limit, self._blocks.reader().sizes(run))
                self._write(tx, [(died_at_ms, reason, rest)])
            taken.append(run)
            limit -= run.count
        if taken:
            tx.after_write(self._set_low, taken[-1].last)
        return taken

    def _get(self, item_id: bytes) -> _Letter | None:
        """The entry of the first run that ends with the item or later."""
        start, stop = self._prefix + item_id, self._prefix + last_id_end(item_id)
        found = self._store.scan(Family.DEAD, start, stop, 1)
        return decode_dead(found[0][0][PREFIX_BYTES:], found[0][1]) if found else None

    def _write(self, tx: Transaction[Any], letters: Sequence[_Letter]) -> None:
        for died_at_ms, reason, run in letters:
            encoded = encode_dead(died_at_ms, reason, run)
            tx.batch.put(Family.DEAD, self._prefix + run.last, encoded)
            tx.counters.dead += run.count
            tx.after_write(self._lower, run.last)

    def _delete(self, tx: Transaction[Any], runs: Sequence[Run]) -> None:
        tx.batch.delete_many(Family.DEAD, [self._prefix + run.last for run in runs])
        tx.counters.dead -= count_items(runs)

    def _lower(self, item_id: ItemId) -> None:
        self.low = min(self.low, item_id)

    def _set_low(self, item_id: ItemId) -> None:
        self.low = item_id
