"""Rebuild the states of a queue's items from what is left of its families.

Every item that can be read is kept, in one state: that of its entry. An item without an entry, or
of a lease, becomes ready. An entry without an item is dropped.
"""

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field

from queueber.db.families import Family
from queueber.db.records import keys
from queueber.db.records.items import decode_details
from queueber.db.records.queues import Counters
from queueber.db.store.contract import Batch
from queueber.engine.integrity.check_items import (
    COUNTED,
    NO_ITEMS,
    ItemEntry,
    LiveItems,
    item_size,
    read_entries,
)
from queueber.engine.integrity.queue_entries import QueueEntries, readable
from queueber.ids import made_at_ms
from queueber.limits import ATTEMPTS_CEILING, PRIORITY_DEFAULT, PRIORITY_MAX

_CHUNK = 500
_STATES = (Family.VISIBILITY_INDEX, Family.DELAYED, Family.LEASES, Family.DEAD)
_REBUILT = (*_STATES, Family.PLACES, Family.LEASE_EXPIRY, Family.HOLDERS)


@dataclass(slots=True)
class ItemsRebuild:
    """Holds the entries of all items of the queue in memory. All keys have the right lengths."""

    entries: QueueEntries
    counters: Counters
    batches: Collection[int]
    """The numbers of those that can be read."""
    completed: Collection[bytes]
    """The ids of items that have a result."""
    lost: Counter[str]
    """Counts what cannot be kept."""
    live: dict[int, LiveItems] = field(default_factory=dict)
    _found: dict[bytes, ItemEntry] = field(default_factory=dict)

    def run(self) -> None:
        """Write every item's entry again, and set the counts in the counters."""
        counters = self.counters
        for name in COUNTED:
            setattr(counters, name, 0)
        counters.levels = {}
        counters.lease_due_ms = counters.delayed_due_ms = keys.NEVER_MS
        if leases := self.entries.count(Family.LEASES):
            self.lost["leases ended: their items are ready again"] += leases
        for family in _STATES:
            self._read_entries(family)
        batch = self.entries.store.batch()
        for family in _REBUILT:
            self.entries.delete_all(batch, family)
        self.entries.store.write(batch)
        self._write_entries()
        if self._found:
            self.lost["entries of items that cannot be read, or are gone"] += len(self._found)
        self._drop_histories()

    def _read_entries(self, family: Family) -> None:
        for key, value in self.entries.walk(family):
            entries = readable(read_entries, family, key, value)
            for entry in [None] if entries is None else entries:
                if entry is None or len(entry.mark) != keys.MARK_BYTES:
                    self.lost["entries that cannot be read"] += 1
                else:
                    self._found.setdefault(entry.item_id, entry)

    def _write_entries(self) -> None:
        batch, waiting = self.entries.store.batch(), 0
        for item_id, value in self.entries.walk(Family.ITEMS):
            waiting += 1
            found = self._found.pop(item_id, None)
            size = readable(item_size, value)
            if size is None:
                self.lost["items whose contents cannot be read"] += 1
                batch.delete(Family.ITEMS, self.entries.prefix + item_id)
            elif item_id in self.completed:
                self.lost["items that were completed, and had come back"] += 1
                batch.delete(Family.ITEMS, self.entries.prefix + item_id)
            else:
                mark = self._mark(item_id, found, size, has_details=any(decode_details(value)))
                self.counters.contents_bytes += size
                self._put(batch, item_id, found, mark)
            if waiting == _CHUNK:
                self.entries.store.write(batch)
                batch, waiting = self.entries.store.batch(), 0
        self.entries.store.write(batch)

    def _put(self, batch: Batch, item_id: bytes, found: ItemEntry | None, mark: keys.Mark) -> None:
        counters, key = self.counters, self.entries.prefix + item_id
        counters.last_id = max(counters.last_id, item_id)
        if found is not None and found.family is Family.DEAD:
            batch.put(Family.DEAD, key, keys.encode_dead(*found.died, mark))
            counters.dead += 1
            return
        fields = keys.decode_mark(mark)
        if fields.batch:
            self.live[fields.batch] = self.live.get(fields.batch, NO_ITEMS).plus(item_id)
        counters.quarantined += bool(fields.group_max)
        if found is None:
            self.lost["items whose place was lost: they are ready"] += 1
        due = found.due if found is not None else None
        if due is None:
            due = keys.due_part(made_at_ms(item_id), item_id)
        if not keys.is_where_its_id_says(due):
            batch.put(Family.PLACES, key, due[: keys.TIME_BYTES])
        if found is not None and found.family is Family.DELAYED:
            batch.put(Family.DELAYED, self.entries.prefix + due, mark)
            counters.delayed += 1
            counters.delayed_due_ms = min(counters.delayed_due_ms, keys.split_due_part(due)[0])
            return
        level = keys.mark_level(mark)
        batch.put(Family.VISIBILITY_INDEX, self.entries.prefix + keys.level_part(level) + due, mark)
        counters.ready += 1
        ready, low = counters.levels.get(level, (0, due))
        counters.levels[level] = (ready + 1, min(low, due))

    def _mark(
        self, item_id: bytes, found: ItemEntry | None, size: int, *, has_details: bool
    ) -> keys.Mark:
        """The item's mark: size, attempts and details are those of its records."""
        old = keys.decode_mark(found.mark) if found is not None else keys.MarkFields(size)
        plain = keys.decode_mark(keys.new_mark(size, 0, PRIORITY_DEFAULT, has_details=has_details))
        number = old.batch if old.batch in self.batches else 0
        if number != old.batch:
            self.lost["items of a batch that cannot be read: they belong to none"] += 1
        # As many as there are times of failures; of more than are kept, as the mark has it.
        attempts = len(_times(self.entries.get(Family.ATTEMPTS, item_id)))
        if attempts == ATTEMPTS_CEILING:
            attempts = max(attempts, old.attempts)
        return keys.encode_mark(
            plain._replace(
                batch=number,
                attempts=attempts,
                group_max=old.group_max,
                priority=min(old.priority, PRIORITY_MAX),
            )
        )

    def _drop_histories(self) -> None:
        """Drop histories of failures that cannot be read, or whose item does not exist."""
        batch = self.entries.store.batch()
        for item_id, value in self.entries.walk(Family.ATTEMPTS):
            has_item = self.entries.get(Family.ITEMS, item_id) is not None
            if not has_item or not _times(value):
                batch.delete(Family.ATTEMPTS, self.entries.prefix + item_id)
        self.entries.store.write(batch)


def _times(history: bytes | None) -> list[int]:
    """When an item failed; empty if it never did, or its history cannot be read."""
    times, _ = readable(keys.decode_attempts, history or b"") or ([], "")
    return times
