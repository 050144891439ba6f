"""Rebuild the options of items: those that can be read, of items that are left, stay."""

from collections import Counter
from collections.abc import Mapping

from queueber.db.families import Family
from queueber.db.records.item_options import StoredOptions, decode_options
from queueber.db.records.keys import due_part
from queueber.db.records.queues import Counters
from queueber.db.records.runs import Run
from queueber.engine.integrity.queue_entries import InStep, QueueEntries, QueueWrites, readable
from queueber.engine.integrity.stored_blocks import StoredBlock


class OptionsRebuild:
    """Is asked for the options of each block, in order of their ids."""

    def __init__(
        self,
        entries: QueueEntries,
        writes: QueueWrites,
        counters: Counters,
        lost: Counter[str],
    ) -> None:
        self._writes = writes
        self._counters = counters
        self._lost = lost
        self._stored = InStep(entries.walk(Family.ITEM_OPTIONS))
        self._of_block: dict[bytes, StoredOptions] = {}

    def fit(self, block: StoredBlock, left: int) -> Mapping[int, StoredOptions]:
        """By position the options of items that have some; `left` has the bits of those left."""
        kept: dict[int, StoredOptions] = {}
        self._of_block = {}
        for item_id, value in self._stored.up_to(block.last):
            position = block.position_of(item_id)
            is_left = position is not None and bool(left >> position & 1)
            options = readable(decode_options, value)
            if position is not None and is_left and options is not None:
                kept[position] = self._of_block[item_id] = options
                continue
            if is_left:
                self._lost["options of items: those of the queue hold"] += 1
            self._writes.delete(Family.ITEM_OPTIONS, item_id)
        return kept

    def put_expiry(self, run: Run) -> None:
        """The items of a run of that block expire."""
        counters = self._counters
        for item_id in run.ids:
            at_ms = self._of_block[item_id].expires_at_ms
            self._writes.put(Family.ITEM_EXPIRY, due_part(at_ms, item_id), b"")
            counters.expiring += 1
            counters.expiry_due_ms = min(counters.expiry_due_ms, at_ms)

    def drop_rest(self) -> None:
        for item_id, _ in self._stored.rest():
            self._writes.delete(Family.ITEM_OPTIONS, item_id)
