"""Rebuild the states of a queue's items from what is left of its families.

Every item that can be read is kept, in one state: that of its entry. An item without an entry, or
of a lease, becomes ready. An entry without an item is dropped.
"""

import struct
from collections import Counter
from collections.abc import Collection
from typing import NamedTuple

from queueber.db.families import Family
from queueber.db.records.items import decode_details, decode_lease, split_held
from queueber.db.records.keys import (
    LEVEL_BYTES,
    MARK_BYTES,
    NEVER_MS,
    TIME_BYTES,
    Due,
    Mark,
    MarkFields,
    decode_attempts,
    decode_dead,
    decode_mark,
    due_part,
    encode_dead,
    encode_mark,
    is_where_its_id_says,
    level_part,
    mark_level,
    new_mark,
    split_due_part,
)
from queueber.db.records.queues import Counters
from queueber.db.records.remembered import ids_digest
from queueber.db.store.contract import Batch
from queueber.engine.integrity.check_items import NO_ITEMS, LiveItems, item_size
from queueber.engine.integrity.queue_entries import QueueEntries
from queueber.ids import made_at_ms
from queueber.limits import ATTEMPTS_CEILING, ID_BYTES, PRIORITY_DEFAULT, PRIORITY_MAX

_CHUNK = 500
_STATES = (Family.VISIBILITY_INDEX, Family.DELAYED, Family.LEASES, Family.DEAD)
_REBUILT = (*_STATES, Family.PLACES, Family.LEASE_EXPIRY, Family.HOLDERS)


class FoundEntry(NamedTuple):
    """The entry of an item that says which state it is in."""

    family: Family
    mark: Mark
    due: Due | None = None
    """When it is visible, and its id, if it is ready or delayed."""
    died: tuple[int, int] = (0, 0)
    """When and why it died, if it is dead."""


class ItemsRebuild:
    """Holds the entries of all items of the queue in memory."""

    def __init__(
        self,
        entries: QueueEntries,
        batches: Collection[int],
        completed: Collection[bytes],
        lost: Counter[str],
    ) -> None:
        """`batches` are the numbers of those that can be read, `completed` the ids of items that
        have a result; `lost` counts what cannot be kept."""
        self._entries = entries
        self._store = entries.store
        self._prefix = entries.prefix
        self._batches = batches
        self._completed = completed
        self._lost = lost
        self._found: dict[bytes, FoundEntry] = {}
        self.live: dict[int, LiveItems] = {}

    def run(self, counters: Counters) -> None:
        """Write every item's entry again, and set the counts in `counters`."""
        for name in ("ready", "delayed", "leased", "dead", "leases", "contents_bytes"):
            setattr(counters, name, 0)
        counters.quarantined = 0
        counters.levels = {}
        counters.lease_due_ms = counters.delayed_due_ms = NEVER_MS
        if leases := self._entries.count(Family.LEASES):
            self._lost["leases ended: their items are ready again"] += leases
        for family in _STATES:
            self._read_entries(family)
        batch = self._store.batch()
        for family in _REBUILT:
            self._entries.delete_all(batch, family)
        self._store.write(batch)
        self._write_entries(counters)
        if self._found:
            self._lost["entries of items that cannot be read, or are gone"] += len(self._found)
        self._drop_histories()

    def _read_entries(self, family: Family) -> None:
        read = _read_lease if family is Family.LEASES else _read_entry
        for key, value in self._entries.walk(family):
            for item_id, found in read(family, key, value):
                if found is None:
                    self._lost["entries that cannot be read"] += 1
                else:
                    self._found.setdefault(item_id, found)

    def _write_entries(self, counters: Counters) -> None:
        batch, waiting = self._store.batch(), 0
        for item_id, value in self._entries.walk(Family.ITEMS):
            waiting += 1
            found = self._found.pop(item_id, None)
            size = _item_size(item_id, value)
            if size is None:
                self._lost["items whose contents cannot be read"] += 1
                batch.delete(Family.ITEMS, self._prefix + item_id)
            elif item_id in self._completed:
                self._lost["items that were completed, and had come back"] += 1
                batch.delete(Family.ITEMS, self._prefix + item_id)
            else:
                self._put(batch, counters, item_id, found, size, value)
            if waiting == _CHUNK:
                self._store.write(batch)
                batch, waiting = self._store.batch(), 0
        self._store.write(batch)

    def _put(
        self,
        batch: Batch,
        counters: Counters,
        item_id: bytes,
        found: FoundEntry | None,
        size: int,
        value: bytes,
    ) -> None:
        mark = self._mark(item_id, found, size, has_details=any(decode_details(value)))
        key = self._prefix + item_id
        counters.contents_bytes += size
        counters.last_id = max(counters.last_id, item_id)
        decoded = decode_mark(mark)
        if found is not None and found.family is Family.DEAD:
            batch.put(Family.DEAD, key, encode_dead(*found.died, mark))
            counters.dead += 1
            return
        if decoded.batch:
            count, digest = self.live.get(decoded.batch, NO_ITEMS)
            self.live[decoded.batch] = LiveItems(count + 1, digest + ids_digest([item_id]))
        counters.quarantined += bool(decoded.group_max)
        if found is None:
            self._lost["items whose place was lost: they are ready"] += 1
        due = found.due if found is not None else None
        if due is None:
            due = due_part(made_at_ms(item_id), item_id)
        if not is_where_its_id_says(due):
            batch.put(Family.PLACES, key, due[:TIME_BYTES])
        if found is not None and found.family is Family.DELAYED:
            batch.put(Family.DELAYED, self._prefix + due, mark)
            counters.delayed += 1
            counters.delayed_due_ms = min(counters.delayed_due_ms, split_due_part(due)[0])
            return
        level = mark_level(mark)
        batch.put(Family.VISIBILITY_INDEX, self._prefix + level_part(level) + due, mark)
        counters.ready += 1
        ready, low = counters.levels.get(level, (0, due))
        counters.levels[level] = (ready + 1, min(low, due))

    def _mark(
        self, item_id: bytes, found: FoundEntry | None, size: int, *, has_details: bool
    ) -> Mark:
        """The item's mark: size, attempts and details are those of its records."""
        old = decode_mark(found.mark) if found is not None else MarkFields(size)
        plain = decode_mark(new_mark(size, 0, PRIORITY_DEFAULT, has_details=has_details))
        number = old.batch if old.batch in self._batches else 0
        if number != old.batch:
            self._lost["items of a batch that cannot be read: they belong to none"] += 1
        return encode_mark(
            plain._replace(
                batch=number,
                attempts=self._attempts(item_id, old.attempts),
                group_max=old.group_max,
                priority=min(old.priority, PRIORITY_MAX),
            )
        )

    def _attempts(self, item_id: bytes, counted: int) -> int:
        """As many as there are times of failures; of more than are kept, as the mark has it."""
        stored = self._entries.get(Family.ATTEMPTS, item_id)
        times = len((_times(stored) if stored is not None else None) or ())
        return max(times, counted) if times == ATTEMPTS_CEILING else times

    def _drop_histories(self) -> None:
        """Drop histories of failures that cannot be read, or whose item does not exist."""
        batch = self._store.batch()
        for item_id, value in self._entries.walk(Family.ATTEMPTS):
            has_item = self._entries.get(Family.ITEMS, item_id) is not None
            if not has_item or not _times(value):
                batch.delete(Family.ATTEMPTS, self._prefix + item_id)
        self._store.write(batch)


ItemsOfEntry = list[tuple[bytes, FoundEntry | None]]
"""The items of an entry by id; None for one that cannot be read."""


def _read_lease(family: Family, _: bytes, value: bytes) -> ItemsOfEntry:
    try:
        held = split_held(decode_lease(value)[1])
    except Exception:  # noqa: BLE001  damaged bytes raise all kinds
        return [(b"", None)]
    return [
        (item_id, FoundEntry(family, Mark(mark)) if len(mark) == MARK_BYTES else None)
        for item_id, mark in held
    ]


def _read_entry(family: Family, key: bytes, value: bytes) -> ItemsOfEntry:
    if family is Family.DEAD:
        try:
            died_at_ms, reason, mark = decode_dead(value)
        except (ValueError, IndexError):
            return [(b"", None)]
        item_id, found = key, FoundEntry(family, mark, died=(died_at_ms, reason))
    else:
        due = Due(key[LEVEL_BYTES:] if family is Family.VISIBILITY_INDEX else key)
        item_id, found = due[TIME_BYTES:], FoundEntry(family, Mark(value), due)
    is_whole = len(item_id) == ID_BYTES and len(found.mark) == MARK_BYTES
    return [(item_id, found if is_whole else None)]


def _item_size(item_id: bytes, value: bytes) -> int | None:
    if len(item_id) != ID_BYTES:
        return None
    try:
        return item_size(value)
    except Exception:  # noqa: BLE001  damaged bytes raise all kinds
        return None


def _times(value: bytes) -> list[int] | None:
    try:
        return decode_attempts(value)[0]
    except (ValueError, IndexError, struct.error):
        return None
