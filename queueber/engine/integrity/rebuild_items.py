"""Rebuild where a queue's items are, from what is left of its families.

What counts is the item: each that can be read stays, in one place. Its entry says which; one that
has lost it, or was leased, is ready. Every entry without an item goes.
"""

import struct
from collections.abc import Iterator
from typing import NamedTuple

from queueber.db.families import Family
from queueber.db.records.bookkeeping import decode_attempts, decode_dead, encode_dead, ids_digest
from queueber.db.records.counters import Counters
from queueber.db.records.items import decode_details, decode_item, decode_lease, split_held
from queueber.db.records.keys import (
    DUE_BYTES,
    LEVEL_BYTES,
    NEVER_MS,
    PREFIX_BYTES,
    TIME_BYTES,
    is_where_its_id_says,
    level_part,
    prefix_end,
    split_due_part,
)
from queueber.db.records.marks import (
    MARK_BYTES,
    Mark,
    decode_mark,
    encode_mark,
    mark_level,
    new_mark,
)
from queueber.db.store.contract import Batch, Store
from queueber.engine.integrity.check_items import Live
from queueber.limits import ID_BYTES, PRIORITY_DEFAULT, PRIORITY_MAX

_CHUNK = 500
_WHERE = (Family.VISIBILITY_INDEX, Family.DELAYED, Family.LEASES, Family.DEAD)
_GOES = (*_WHERE, Family.PLACES, Family.LEASE_EXPIRY, Family.HOLDERS)


class Place(NamedTuple):
    """Where an item was, as far as its entry tells."""

    family: Family
    mark: bytes
    due: bytes = b""
    died: tuple[int, int] = (0, 0)
    """When, and why."""


class ItemsRebuild:
    """The items of one queue. All that its families say of places is held in memory."""

    def __init__(self, store: Store, prefix: bytes, batches: set[int], completed: set[bytes]):
        """`batches` are known by number; items of `completed` have a result, and are no more."""
        self._store = store
        self._prefix = prefix
        self._batches = batches
        self._completed = completed
        self._places: dict[bytes, Place] = {}
        self.live: dict[int, Live] = {}
        self.lost: dict[str, int] = {}
        """What could not be kept, and how often."""

    def run(self, counters: Counters) -> None:
        """Write the places anew, and count into `counters`."""
        for name in ("ready", "delayed", "leased", "dead", "leases", "contents_bytes"):
            setattr(counters, name, 0)
        counters.quarantined = 0
        counters.levels = {}
        counters.lease_due_ms = counters.delayed_due_ms = NEVER_MS
        leases = sum(1 for _ in self._walk(Family.LEASES))
        if leases:
            self._lose("leases ended: their items are ready again", leases)
        for family in _WHERE:
            self._read_places(family)
        batch = self._store.batch()
        for family in _GOES:
            batch.delete_range(family, self._prefix, prefix_end(self._prefix))
        self._store.write(batch)
        self._write_places(counters)
        if self._places:
            self._lose("entries of items that cannot be read, or are gone", len(self._places))
        self._drop_histories()

    def _lose(self, what: str, count: int = 1) -> None:
        self.lost[what] = self.lost.get(what, 0) + count

    def _walk(self, family: Family) -> Iterator[tuple[bytes, bytes]]:
        for key, value in self._store.walk(family, self._prefix, prefix_end(self._prefix)):
            yield key[PREFIX_BYTES:], value

    def _read_places(self, family: Family) -> None:
        read = _read_lease if family is Family.LEASES else _read_place
        for key, value in self._walk(family):
            for item_id, place in read(family, key, value):
                if place is None:
                    self._lose("entries that cannot be read")
                elif item_id not in self._places:
                    self._places[item_id] = place

    def _write_places(self, counters: Counters) -> None:
        batch, waiting = self._store.batch(), 0
        for item_id, value in self._walk(Family.ITEMS):
            waiting += 1
            place = self._places.pop(item_id, None)
            size = _item_size(item_id, value)
            if size is None:
                self._lose("items whose contents cannot be read")
                batch.delete(Family.ITEMS, self._prefix + item_id)
            elif item_id in self._completed:
                self._lose("items that were completed, and had come back")
                batch.delete(Family.ITEMS, self._prefix + item_id)
            else:
                self._put(batch, counters, item_id, place, size, value)
            if waiting == _CHUNK:
                self._store.write(batch)
                batch, waiting = self._store.batch(), 0
        self._store.write(batch)

    def _put(
        self,
        batch: Batch,
        counters: Counters,
        item_id: bytes,
        place: Place | None,
        size: int,
        value: bytes,
    ) -> None:
        mark = self._mark(item_id, place, size, has_details=any(decode_details(value)))
        key = self._prefix + item_id
        counters.contents_bytes += size
        counters.last_id = max(counters.last_id, item_id)
        decoded = decode_mark(mark)
        if place is not None and place.family is Family.DEAD:
            batch.put(Family.DEAD, key, encode_dead(*place.died, mark))
            counters.dead += 1
            return
        if decoded.batch:
            count, digest = self.live.get(decoded.batch, (0, 0))
            self.live[decoded.batch] = Live(count + 1, digest + ids_digest([item_id]))
        counters.quarantined += bool(decoded.group_max)
        if place is None:
            self._lose("items whose place was lost: they are ready")
        due = place.due if place is not None and place.due else bytes(2) + item_id[:6] + item_id
        if not is_where_its_id_says(due):
            batch.put(Family.PLACES, key, due[:TIME_BYTES])
        if place is not None and place.family is Family.DELAYED:
            batch.put(Family.DELAYED, self._prefix + due, mark)
            counters.delayed += 1
            counters.delayed_due_ms = min(counters.delayed_due_ms, split_due_part(due)[0])
            return
        level = mark_level(mark)
        batch.put(Family.VISIBILITY_INDEX, self._prefix + level_part(level) + due, mark)
        counters.ready += 1
        ready, low = counters.levels.get(level, (0, due))
        counters.levels[level] = (ready + 1, min(low, due))

    def _mark(self, item_id: bytes, place: Place | None, size: int, *, has_details: bool) -> bytes:
        """The item's mark, with everything in it that can be known from elsewhere."""
        old = decode_mark(place.mark) if place is not None else Mark(size)
        plain = decode_mark(new_mark(size, 0, PRIORITY_DEFAULT, has_details=has_details))
        number = old.batch if old.batch in self._batches else 0
        if number != old.batch:
            self._lose("items of a batch that cannot be read: they belong to none")
        return encode_mark(
            plain._replace(
                batch=number,
                attempts=self._attempts(item_id),
                group_max=old.group_max,
                priority=min(old.priority, PRIORITY_MAX),
            )
        )

    def _attempts(self, item_id: bytes) -> int:
        stored = self._store.get(Family.ATTEMPTS, self._prefix + item_id)
        times = _times(stored) if stored is not None else []
        return len(times) if times is not None else 0

    def _drop_histories(self) -> None:
        """Those that cannot be read, or have no item."""
        batch = self._store.batch()
        for item_id, value in self._walk(Family.ATTEMPTS):
            is_kept = self._store.get(Family.ITEMS, self._prefix + item_id) is not None
            if not is_kept or not _times(value):
                batch.delete(Family.ATTEMPTS, self._prefix + item_id)
        self._store.write(batch)


Read = list[tuple[bytes, Place | None]]
"""The items of an entry, by id; None for one that cannot be read."""


def _read_lease(family: Family, _: bytes, value: bytes) -> Read:
    try:
        held = split_held(decode_lease(value)[1])
    except Exception:  # noqa: BLE001  bytes that are no message fail in many ways
        return [(b"", None)]
    return [(i, Place(family, mark) if len(mark) == MARK_BYTES else None) for i, mark in held]


def _read_place(family: Family, key: bytes, value: bytes) -> Read:
    try:
        if family is Family.VISIBILITY_INDEX:
            due = key[LEVEL_BYTES:]
            item_id, place = due[TIME_BYTES:], Place(family, value, due)
        elif family is Family.DELAYED:
            item_id, place = key[TIME_BYTES:], Place(family, value, key)
        else:
            died_at_ms, reason, mark = decode_dead(value)
            item_id, place = key, Place(family, mark, died=(died_at_ms, reason))
    except (ValueError, IndexError):
        return [(b"", None)]
    fits = (
        len(item_id) == ID_BYTES
        and len(place.mark) == MARK_BYTES
        and len(place.due) in (0, DUE_BYTES)
    )
    return [(item_id, place if fits else None)]


def _item_size(item_id: bytes, value: bytes) -> int | None:
    if len(item_id) != ID_BYTES:
        return None
    try:
        return len(decode_item(value)) + sum(map(len, decode_details(value)))
    except Exception:  # noqa: BLE001  bytes that are no message fail in many ways
        return None


def _times(value: bytes) -> list[int] | None:
    try:
        return decode_attempts(value)[0]
    except (ValueError, IndexError, struct.error):
        return None
