"""The check of a queue's items: where they are, under which lease, and that the counters agree."""

from collections.abc import Generator, Iterator
from typing import NamedTuple

from queueber.db.families import Family
from queueber.db.records.bookkeeping import decode_attempts, decode_dead, ids_digest
from queueber.db.records.counters import Counters
from queueber.db.records.items import (
    decode_details,
    decode_item,
    decode_lease,
    split_held,
)
from queueber.db.records.keys import (
    LEVEL_BYTES,
    TIME_BYTES,
    due_part,
    id_block,
    is_where_its_id_says,
    split_due_part,
    time_part,
)
from queueber.db.records.marks import decode_mark, mark_level
from queueber.db.store.contract import Store
from queueber.engine.integrity.queue_check import QueueCheck, Violation
from queueber.limits import ATTEMPTS_CEILING

_COUNTED = ("ready", "delayed", "leased", "dead", "leases", "contents_bytes", "quarantined")


class Live(NamedTuple):
    """The items of a batch that are not dead."""

    items: int
    digest: int


class Entry(NamedTuple):
    """What one of the four families says of an item."""

    item_id: bytes
    mark: bytes
    due: bytes = b""


class ItemsCheck(QueueCheck):
    def __init__(self, store: Store, name: str, prefix: bytes, counters: Counters) -> None:
        super().__init__(store, name, prefix, counters)
        self._counted = counters.copy()
        for number in _COUNTED:
            setattr(self._counted, number, 0)
        self._level_counts: dict[int, int] = {}
        # Sums over ids: equal when both sides name the same ids equally often, in whatever order.
        self._items_digest = self._entries_digest = 0
        self._placed = self._failed = 0
        self.batches: dict[int, Live] = {}

    def run(self) -> Iterator[Violation]:
        items = yield from self._check_items()
        for family in (Family.VISIBILITY_INDEX, Family.DELAYED, Family.DEAD):
            for chunk in self._walk(family):
                entries = [_read_entry(family, key, value) for key, value in chunk]
                yield from self._check_entries(family, entries)
                for (key, _), entry in zip(chunk, entries, strict=True):
                    if family is Family.VISIBILITY_INDEX:
                        yield from self._check_ready(key[0], entry)
                    elif family is Family.DELAYED:
                        yield from self._check_delayed(entry)
                    else:
                        self._counted.dead += 1
        yield from self._check_leases()
        yield from self._check_expiry()
        yield from self._check_counts(items)

    def _check_counts(self, items: int) -> Iterator[Violation]:
        counted, kept = self._counted, self._counters
        if items != counted.items:
            yield self._broken("I1", f"{items} items, but {counted.items} entries say where")
        elif self._items_digest != self._entries_digest:
            yield self._broken("I1", "some items have several entries, and others have none")
        levels = {level: count for level, (count, _) in kept.levels.items()}
        if counted != kept or levels != self._level_counts:
            yield self._broken("I5", f"counted {counted} {self._level_counts}, kept {kept}")
        ended = kept.removed_total + kept.completed_total + kept.cancelled_total
        if items != kept.added_total - ended:
            yield self._broken("I5", f"{items} items, but {kept.added_total} added, {ended} ended")
        places = sum(1 for _ in self._entries(Family.PLACES))
        if places != self._placed:
            yield self._broken("I9", f"{places} places, but {self._placed} items need one")
        histories = sum(1 for _ in self._entries(Family.ATTEMPTS))
        if histories != self._failed:
            yield self._broken("I11", f"{histories} histories, but {self._failed} items failed")

    def _check_items(self) -> Generator[Violation, None, int]:
        count = 0
        for chunk in self._walk(Family.ITEMS):
            count += len(chunk)
            self._items_digest += _digest([item_id for item_id, _ in chunk])
            self._counted.contents_bytes += sum(_item_size(value) for _, value in chunk)
            if chunk[-1][0] > self._counters.last_id:
                yield self._broken("I8", f"item {chunk[-1][0].hex()} is newer than last_id")
        return count

    def _check_entries(self, family: Family, entries: list[Entry]) -> Iterator[Violation]:
        """What holds of an item wherever it is."""
        ids = [entry.item_id for entry in entries]
        self._entries_digest += _digest(ids)
        items = self._get_many(Family.ITEMS, ids)
        histories = self._get_many(Family.ATTEMPTS, ids)
        for entry, item, history in zip(entries, items, histories, strict=True):
            yield from self._check_entry(family, entry, item, history)

    def _check_entry(
        self, family: Family, entry: Entry, item: bytes | None, history: bytes | None
    ) -> Iterator[Violation]:
        where = f"{family.family_name} has {entry.item_id.hex()}"
        mark = decode_mark(entry.mark)
        if item is None:
            yield self._broken("I2", f"{where}, which does not exist")
        elif _item_size(item) != mark.size or any(decode_details(item)) != mark.has_details:
            yield self._broken("I2", f"{where} as {mark}, which does not fit the item")
        if mark.attempts:
            self._failed += 1
        if mark.group_max and family is not Family.DEAD:
            self._counted.quarantined += 1
        times = 0 if history is None else len(decode_attempts(history)[0])
        if times != min(mark.attempts, ATTEMPTS_CEILING):
            yield self._broken("I11", f"{where} with {mark.attempts} attempts, but {times} times")
        if mark.batch and family is not Family.DEAD:
            count, digest = self.batches.get(mark.batch, (0, 0))
            self.batches[mark.batch] = Live(count + 1, digest + ids_digest([entry.item_id]))
        place = self._get(Family.PLACES, entry.item_id)
        expected = None
        if entry.due and not is_where_its_id_says(entry.due):
            expected = entry.due[:TIME_BYTES]
            self._placed += 1
        if place != expected:
            yield self._broken("I9", f"{where}, but places says {place!r}")

    def _check_ready(self, level: int, entry: Entry) -> Iterator[Violation]:
        self._counted.ready += 1
        self._level_counts[level] = self._level_counts.get(level, 0) + 1
        if level != mark_level(entry.mark):
            yield self._broken("I2", f"{entry.item_id.hex()} is ready in level {level}")
        _, low = self._counters.levels.get(level, (0, b""))
        if entry.due < low:
            yield self._broken("I6", f"visibility_index has {entry.due.hex()} below its mark")

    def _check_delayed(self, entry: Entry) -> Iterator[Violation]:
        self._counted.delayed += 1
        if entry.due < time_part(self._counters.delayed_due_ms):
            yield self._broken("I6", f"delayed has {entry.due.hex()} below its mark")

    def _check_leases(self) -> Iterator[Violation]:
        holders = 0
        for lease_id, value in self._entries(Family.LEASES):
            self._counted.leases += 1
            expires_at_ms, held_bytes = decode_lease(value)
            held = split_held(held_bytes)
            self._counted.leased += len(held)
            if not held:
                yield self._broken("I3", f"lease {lease_id.hex()} holds nothing")
                continue
            yield from self._check_entries(Family.LEASES, [Entry(*each) for each in held])
            if len({item_id for item_id, _ in held}) < len(held):
                yield self._broken("I3", f"lease {lease_id.hex()} holds an item twice")
            for block in {id_block(item_id) for item_id, _ in held}:
                holders += 1
                if self._get(Family.HOLDERS, block + lease_id) is None:
                    yield self._broken("I3", f"holders misses {lease_id.hex()} for {block.hex()}")
            if self._get(Family.LEASE_EXPIRY, due_part(expires_at_ms, lease_id)) is None:
                yield self._broken("I4", f"lease {lease_id.hex()} has no expiry entry")
            if lease_id > self._counters.last_id:
                yield self._broken("I8", f"lease {lease_id.hex()} is newer than last_id")
        found = sum(1 for _ in self._entries(Family.HOLDERS))
        if found != holders:
            yield self._broken("I3", f"{found} entries in holders, but leases need {holders}")

    def _check_expiry(self) -> Iterator[Violation]:
        for due, _ in self._entries(Family.LEASE_EXPIRY):
            at_ms, lease_id = split_due_part(due)
            lease = self._get(Family.LEASES, lease_id)
            if lease is None or decode_lease(lease)[0] != at_ms:
                yield self._broken("I4", f"expiry entry {due.hex()} has no lease")
            if at_ms < self._counters.lease_due_ms:
                yield self._broken("I6", f"lease_expiry has {due.hex()} below its mark")


def _read_entry(family: Family, key: bytes, value: bytes) -> Entry:
    if family is Family.VISIBILITY_INDEX:
        due = key[LEVEL_BYTES:]
        return Entry(due[TIME_BYTES:], value, due=due)
    if family is Family.DELAYED:
        return Entry(key[TIME_BYTES:], value, due=key)
    return Entry(key, decode_dead(value)[2])


def _item_size(value: bytes) -> int:
    return len(decode_item(value)) + sum(map(len, decode_details(value)))


def _digest(ids: list[bytes]) -> int:
    """Squares, so that no pair of wrong ids makes up for another."""
    return sum(int.from_bytes(item_id) ** 2 for item_id in ids)
