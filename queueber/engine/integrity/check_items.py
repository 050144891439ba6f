"""The check of a queue's items: each is in one state, leases are whole, the counters are right."""

from collections.abc import Generator, Iterator, Sequence
from typing import NamedTuple

from queueber.db.families import Family
from queueber.db.records import keys
from queueber.db.records.items import decode_details, decode_item, decode_lease, split_held
from queueber.db.records.remembered import ids_digest
from queueber.engine.integrity.queue_entries import CheckedQueue, Violation
from queueber.ids import ItemId
from queueber.limits import ATTEMPTS_CEILING

COUNTED = ("ready", "delayed", "leased", "dead", "leases", "contents_bytes", "quarantined")


class LiveItems(NamedTuple):
    """The items of a batch that are not dead."""

    items: int = 0
    digest: int = 0

    def plus(self, item_id: bytes) -> "LiveItems":
        return LiveItems(self.items + 1, self.digest + ids_digest([item_id]))


NO_ITEMS = LiveItems()


class ItemEntry(NamedTuple):
    """What one of the four families of states says of an item."""

    family: Family
    item_id: ItemId
    mark: keys.Mark
    due: keys.Due | None = None
    """When it is visible, and its id, if it is ready or delayed."""
    level: int = 0
    """Where it is ready."""
    died: tuple[int, int] = (0, 0)
    """When and why it died, if it is dead."""


def read_entries(family: Family, key: bytes, value: bytes) -> list[ItemEntry]:
    """What an entry says of its item; of a lease, what it says of each item that it holds."""
    if family is Family.LEASES:
        held = split_held(decode_lease(value)[1])
        return [ItemEntry(family, ItemId(item_id), keys.Mark(mark)) for item_id, mark in held]
    if family is Family.DEAD:
        died_at_ms, reason, mark = keys.decode_dead(value)
        return [ItemEntry(family, ItemId(key), mark, died=(died_at_ms, reason))]
    level = key[0] if family is Family.VISIBILITY_INDEX else 0
    due = keys.Due(key[keys.LEVEL_BYTES :] if family is Family.VISIBILITY_INDEX else key)
    return [ItemEntry(family, ItemId(due[keys.TIME_BYTES :]), keys.Mark(value), due, level)]


class ItemsCheck:
    def __init__(self, queue: CheckedQueue) -> None:
        self._broken = queue.broken
        self._entries = queue.entries
        self._counters = queue.counters
        self._counted = queue.counters.copy()
        for number in COUNTED:
            setattr(self._counted, number, 0)
        self._level_counts: dict[int, int] = {}
        # Sums over ids: equal if both sides have the same ids equally often, in any order.
        self._items_digest = self._entries_digest = 0
        self._placed = self._failed = 0
        self.batches: dict[int, LiveItems] = {}

    def run(self) -> Iterator[Violation]:
        items = yield from self._check_items()
        for family in (Family.VISIBILITY_INDEX, Family.DELAYED, Family.DEAD):
            for chunk in self._entries.chunks(family):
                entries = [entry for each in chunk for entry in read_entries(family, *each)]
                yield from self._check_entries(entries)
                for entry in entries:
                    yield from self._check_state(entry)
        yield from self._check_leases()
        yield from self._check_expiry()
        yield from self._check_counts(items)

    def _check_counts(self, items: int) -> Iterator[Violation]:
        counted, kept = self._counted, self._counters
        if items != counted.items:
            yield self._broken("I1", f"{items} items, but {counted.items} entries of states")
        elif self._items_digest != self._entries_digest:
            yield self._broken("I1", "some items have several entries, and others have none")
        levels = {level: count for level, (count, _) in kept.levels.items()}
        if counted != kept or levels != self._level_counts:
            yield self._broken("I5", f"counted {counted} {self._level_counts}, kept {kept}")
        ended = kept.removed_total + kept.completed_total + kept.cancelled_total
        if items != kept.added_total - ended:
            yield self._broken("I5", f"{items} items, but {kept.added_total} added, {ended} ended")
        places = self._entries.count(Family.PLACES)
        if places != self._placed:
            yield self._broken("I9", f"{places} places, but {self._placed} items need one")
        histories = self._entries.count(Family.ATTEMPTS)
        if histories != self._failed:
            yield self._broken("I11", f"{histories} histories, but {self._failed} items failed")

    def _check_items(self) -> Generator[Violation, None, int]:
        count = 0
        for chunk in self._entries.chunks(Family.ITEMS):
            count += len(chunk)
            self._items_digest += _digest([item_id for item_id, _ in chunk])
            self._counted.contents_bytes += sum(item_size(value) for _, value in chunk)
            if chunk[-1][0] > self._counters.last_id:
                yield self._broken("I8", f"item {chunk[-1][0].hex()} is newer than last_id")
        return count

    def _check_entries(self, entries: list[ItemEntry]) -> Iterator[Violation]:
        """Check what holds for an item in any state."""
        ids = [entry.item_id for entry in entries]
        self._entries_digest += _digest(ids)
        items = self._entries.get_many(Family.ITEMS, ids)
        histories = self._entries.get_many(Family.ATTEMPTS, ids)
        for entry, item, history in zip(entries, items, histories, strict=True):
            yield from self._check_entry(entry, item, history)

    def _check_entry(
        self, entry: ItemEntry, item: bytes | None, history: bytes | None
    ) -> Iterator[Violation]:
        where = f"{entry.family.family_name} has {entry.item_id.hex()}"
        mark = keys.decode_mark(entry.mark)
        if item is None:
            yield self._broken("I2", f"{where}, which does not exist")
        elif item_size(item) != mark.size or any(decode_details(item)) != mark.has_details:
            yield self._broken("I2", f"{where} as {mark}, which does not match the item")
        if mark.attempts:
            self._failed += 1
        if mark.group_max and entry.family is not Family.DEAD:
            self._counted.quarantined += 1
        times = 0 if history is None else len(keys.decode_attempts(history)[0])
        if times != min(mark.attempts, ATTEMPTS_CEILING):
            yield self._broken("I11", f"{where} with {mark.attempts} attempts, but {times} times")
        if mark.batch and entry.family is not Family.DEAD:
            live = self.batches.get(mark.batch, NO_ITEMS)
            self.batches[mark.batch] = live.plus(entry.item_id)
        place = self._entries.get(Family.PLACES, entry.item_id)
        expected = None
        if entry.due and not keys.is_where_its_id_says(entry.due):
            expected = entry.due[: keys.TIME_BYTES]
            self._placed += 1
        if place != expected:
            yield self._broken("I9", f"{where}, but places says {place!r}")

    def _check_state(self, entry: ItemEntry) -> Iterator[Violation]:
        """Count an item that is not leased, and check that it is where its entry says."""
        due, level, family = entry.due, entry.level, entry.family
        if due is None:
            self._counted.dead += 1
            return
        if family is Family.DELAYED:
            self._counted.delayed += 1
            low = keys.time_part(self._counters.delayed_due_ms)
        else:
            self._counted.ready += 1
            self._level_counts[level] = self._level_counts.get(level, 0) + 1
            if level != keys.mark_level(entry.mark):
                yield self._broken("I2", f"{entry.item_id.hex()} is ready in level {level}")
            _, low = self._counters.levels.get(level, (0, b""))
        if due < low:
            text = f"{family.family_name} has {due.hex()} before its first known entry"
            yield self._broken("I6", text)

    def _check_leases(self) -> Iterator[Violation]:
        holders = 0
        for lease_id, value in self._entries.walk(Family.LEASES):
            self._counted.leases += 1
            expires_at_ms, _ = decode_lease(value)
            held = read_entries(Family.LEASES, lease_id, value)
            self._counted.leased += len(held)
            if not held:
                yield self._broken("I3", f"lease {lease_id.hex()} holds nothing")
                continue
            yield from self._check_entries(held)
            if len({entry.item_id for entry in held}) < len(held):
                yield self._broken("I3", f"lease {lease_id.hex()} holds an item twice")
            for block in {keys.id_block(entry.item_id) for entry in held}:
                holders += 1
                if self._entries.get(Family.HOLDERS, block + lease_id) is None:
                    yield self._broken("I3", f"holders misses {lease_id.hex()} for {block.hex()}")
            expiry = keys.due_part(expires_at_ms, lease_id)
            if self._entries.get(Family.LEASE_EXPIRY, expiry) is None:
                yield self._broken("I4", f"lease {lease_id.hex()} has no expiry entry")
            if lease_id > self._counters.last_id:
                yield self._broken("I8", f"lease {lease_id.hex()} is newer than last_id")
        found = self._entries.count(Family.HOLDERS)
        if found != holders:
            yield self._broken("I3", f"{found} entries in holders, but leases need {holders}")

    def _check_expiry(self) -> Iterator[Violation]:
        for due, _ in self._entries.walk(Family.LEASE_EXPIRY):
            at_ms, lease_id = keys.split_due_part(due)
            lease = self._entries.get(Family.LEASES, lease_id)
            if lease is None or decode_lease(lease)[0] != at_ms:
                yield self._broken("I4", f"expiry entry {due.hex()} has no lease")
            if at_ms < self._counters.lease_due_ms:
                text = f"lease_expiry has {due.hex()} before its first known entry"
                yield self._broken("I6", text)


def item_size(value: bytes) -> int:
    """Bytes of contents, key and attributes, as in the mark."""
    return len(decode_item(value)) + sum(map(len, decode_details(value)))


def _digest(ids: Sequence[bytes]) -> int:
    """A sum of squares: two wrong ids do not cancel each other out."""
    return sum(int.from_bytes(item_id) ** 2 for item_id in ids)
