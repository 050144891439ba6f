"""Dead letters: items that no poll gets any more, until somebody redrives or deletes them, or the
queue has kept them for as long as its settings say.

They are in order of id, not of death. So those that are old are found by reading all of them, a
slice at a time. One such round learns when the oldest of those that stay died: nothing is read
until that one is due.
"""

from collections.abc import Sequence
from operator import itemgetter
from typing import Any

from queueber.db.families import Family
from queueber.db.records.cutting import by_entry, cut, join, pick
from queueber.db.records.dead_letters import decode_dead, encode_dead
from queueber.db.records.keys import NEVER_MS, PREFIX_BYTES, last_id_end, prefix_end
from queueber.db.records.runs import Run, count_items
from queueber.db.store.contract import Store
from queueber.engine.kernel.transaction import Transaction
from queueber.engine.queue.blocks import Blocks
from queueber.engine.records.waits import items_ended, stop_waiting
from queueber.ids import ItemId
from queueber.limits import DEAD_READ_REST_MS, SWEEP_SLICE_ITEMS

_Letter = tuple[int, int, Run]
"""When and why the items of a run died, and the run."""


class DeadLetters:
    """The dead letters of one queue."""

    __slots__ = (
        "_blocks", "_oldest_ms", "_prefix", "_read_from", "_rests_until_ms", "_store", "low",
    )  # fmt: skip

    def __init__(self, store: Store, prefix: bytes, blocks: Blocks) -> None:
        self._store = store
        self._prefix = prefix
        self._blocks = blocks
        self.low = ItemId(b"")
        """No entry of a dead letter has a lower id: a scan of them starts here."""
        self._oldest_ms = 0
        """None died before this; during a round: none of those that it has passed."""
        self._read_from = b""
        """Where the next slice of a round starts; empty: there is none."""
        self._rests_until_ms = 0

    def put(self, tx: Transaction[Any], runs: Sequence[Run], reason: int) -> None:
        """Items die now, all for one reason."""
        self._write(tx, [(tx.now_ms, reason, run) for run in join(sorted(runs))])
        tx.counters.died_total += count_items(runs)
        if tx.counters.waiting:
            stop_waiting(tx, runs)
            items_ended(tx, runs, is_done=False)
        if age_ms := tx.queue.settings.dead_age_ms:
            tx.due(tx.now_ms + age_ms)

    def has(self, item_id: bytes) -> bool:
        """Whether an item is a dead letter."""
        letter = self._get(item_id)
        return letter is not None and letter[2].position_of(item_id) is not None

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

    def due_ms(self, age_ms: int, now_ms: int) -> int:
        """When to read on for those that died so long ago."""
        due_ms = 0 if self._read_from else self._oldest_ms + age_ms
        # A rest that is longer than any is one of before the clock was set back.
        is_over = not now_ms < self._rests_until_ms <= now_ms + DEAD_READ_REST_MS
        return due_ms if is_over else max(due_ms, self._rests_until_ms)

    def take_old(self, tx: Transaction[Any], age_ms: int, limit: int) -> list[Run]:
        """Take those that died so long ago out of the next slice, until it has `limit` items."""
        start, stop = self._prefix + (self._read_from or self.low), prefix_end(self._prefix)
        entries = self._store.scan(Family.DEAD, start, stop, limit)
        oldest_ms = self._oldest_ms if self._read_from else NEVER_MS
        old: list[Run] = []
        young: Run | None = None
        read = items = 0
        for key, value in entries:
            died_at_ms, _, run = decode_dead(key[PREFIX_BYTES:], value)
            read += 1
            if died_at_ms + age_ms > tx.now_ms:
                oldest_ms = min(oldest_ms, died_at_ms)
                young = young or run
                continue
            old.append(run)
            items += run.count
            if items >= limit:
                break
        self._delete(tx, old)
        if old and self._read_from[:-1] <= self.low:  # nothing is left before this slice
            tx.after_write(self._set_low, (young or old[-1]).last)
        is_end = read == len(entries) < limit
        read_from = b"" if is_end else entries[read - 1][0][PREFIX_BYTES:] + b"\0"
        rests_until_ms = tx.now_ms + DEAD_READ_REST_MS * read // SWEEP_SLICE_ITEMS
        tx.after_write(self._has_read, read_from, oldest_ms, rests_until_ms)
        return old

    def _has_read(self, read_from: bytes, oldest_ms: int, rests_until_ms: int) -> None:
        self._read_from, self._oldest_ms = read_from, oldest_ms
        self._rests_until_ms = rests_until_ms

    def find(self, item_id: bytes) -> _Letter | None:
        """When and why an item died, and its run; None if it is no dead letter."""
        letter = self._get(item_id)
        return letter if letter and letter[2].position_of(item_id) is not None else None

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
            tx.after_write(self._wrote, run.last, died_at_ms)

    def _delete(self, tx: Transaction[Any], runs: Sequence[Run]) -> None:
        tx.batch.delete_many(Family.DEAD, [self._prefix + run.last for run in runs])
        tx.counters.dead -= count_items(runs)

    def _wrote(self, item_id: ItemId, died_at_ms: int) -> None:
        self.low = min(self.low, item_id)
        self._oldest_ms = min(self._oldest_ms, died_at_ms)

    def _set_low(self, item_id: ItemId) -> None:
        self.low = item_id
