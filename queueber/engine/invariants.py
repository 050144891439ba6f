"""Check a store against every rule of `lifecycle.INVARIANTS`.

Walks each family once, with a point read for each index entry: time grows with the store, memory
does not. Tests call it after every step, `queueber verify` on a stopped store.
"""

from collections.abc import Generator, Iterator
from dataclasses import dataclass
from itertools import islice

from queueber.db.families import QUEUE_FAMILIES, Family
from queueber.db.keys import (
    DUE_BYTES,
    PREFIX_BYTES,
    TIME_BYTES,
    due_part,
    prefix_end,
    split_due_part,
    split_queue_prefix,
    time_part,
)
from queueber.db.records import (
    Counters,
    decode_counters,
    decode_in_progress,
    decode_item,
    decode_lease,
    decode_queue,
    decode_size,
    split_held,
)
from queueber.db.store import Store
from queueber.limits import ID_BYTES

_CHUNK = 1000
_LAST_KEY = b"\xff" * 64

_KEY_BYTES = {
    Family.QUEUES: PREFIX_BYTES,
    Family.COUNTERS: PREFIX_BYTES,
    Family.ITEMS: PREFIX_BYTES + ID_BYTES,
    Family.VISIBILITY_INDEX: PREFIX_BYTES + DUE_BYTES,
    Family.DELAYED: PREFIX_BYTES + DUE_BYTES,
    Family.IN_PROGRESS: PREFIX_BYTES + ID_BYTES,
    Family.LEASES: PREFIX_BYTES + ID_BYTES,
    Family.LEASE_EXPIRY: PREFIX_BYTES + DUE_BYTES,
}


@dataclass(frozen=True, slots=True)
class Violation:
    rule: str
    queue: str
    text: str

    def __str__(self) -> str:
        return f"{self.rule} {self.queue}: {self.text}"


def check_store(store: Store, violations_max: int = 100) -> list[Violation]:
    """The first `violations_max` things that are wrong; empty when all is well."""
    return list(islice(_check_store(store), violations_max))


def _check_store(store: Store) -> Iterator[Violation]:
    yield from _check_keys(store)
    for prefix, record in store.walk(Family.QUEUES, b"", _LAST_KEY):
        name = f"#{split_queue_prefix(prefix)}"
        try:
            name = decode_queue(record)[0]
            stored = store.get(Family.COUNTERS, prefix)
            if stored is None:
                yield Violation("I5", name, "has no counters")
            else:
                yield from _QueueCheck(store, name, prefix, decode_counters(stored)).run()
        except Exception as error:  # noqa: BLE001  damage shows in many ways; it ends this queue's check
            yield Violation("I7", name, f"a value cannot be read: {error!r}")


def _check_keys(store: Store) -> Iterator[Violation]:
    """I7, for all families, also for what belongs to no queue."""
    known = {prefix for prefix, _ in store.walk(Family.QUEUES, b"", _LAST_KEY)}
    for family in QUEUE_FAMILIES:
        for key, _ in store.walk(family, b"", _LAST_KEY):
            if len(key) != _KEY_BYTES[family]:
                yield Violation("I7", "-", f"{family.family_name} has the key {key.hex()}")
            elif key[:PREFIX_BYTES] not in known:
                number = split_queue_prefix(key[:PREFIX_BYTES])
                yield Violation("I7", f"#{number}", f"{family.family_name} has {key.hex()}")


class _QueueCheck:
    def __init__(self, store: Store, name: str, prefix: bytes, counters: Counters) -> None:
        self._store = store
        self._name = name
        self._prefix = prefix
        self._counters = counters
        self._counted = Counters(
            added_total=counters.added_total,
            polled_total=counters.polled_total,
            removed_total=counters.removed_total,
            expired_total=counters.expired_total,
            extended_total=counters.extended_total,
            lease_due_ms=counters.lease_due_ms,
            delayed_due_ms=counters.delayed_due_ms,
            ready_low=counters.ready_low,
            last_id=counters.last_id,
        )

        # Sums over ids: equal when both sides name the same ids equally often, in whatever order.
        self._items_digest = self._entries_digest = 0

    def run(self) -> Iterator[Violation]:
        items = yield from self._check_items()
        yield from self._check_index(Family.VISIBILITY_INDEX, self._counters.ready_low)
        yield from self._check_index(Family.DELAYED, time_part(self._counters.delayed_due_ms))
        yield from self._check_in_progress()
        yield from self._check_leases()
        yield from self._check_expiry()
        counted, kept = self._counted, self._counters
        places = counted.ready + counted.delayed + counted.in_progress
        if items != places:
            yield self._broken("I1", f"{items} items, but {places} entries say where they are")
        elif self._items_digest != self._entries_digest:
            yield self._broken("I1", "some items have several entries, and others have none")
        if counted != kept:
            yield self._broken("I5", f"counted {counted}, kept {kept}")
        gone = kept.added_total - kept.removed_total
        if items != gone:
            yield self._broken("I5", f"{items} items, but added minus removed is {gone}")

    def _broken(self, rule: str, text: str) -> Violation:
        return Violation(rule, self._name, text)

    def _walk(self, family: Family) -> Iterator[list[tuple[bytes, bytes]]]:
        """The queue's entries without its prefix, in chunks."""
        entries = self._store.walk(family, self._prefix, prefix_end(self._prefix))
        while chunk := [(key[PREFIX_BYTES:], value) for key, value in islice(entries, _CHUNK)]:
            yield chunk

    def _get_many(self, family: Family, ids: list[bytes]) -> list[bytes | None]:
        return self._store.get_many(family, [self._prefix + each for each in ids])

    def _check_items(self) -> Generator[Violation, None, int]:
        count = 0
        for chunk in self._walk(Family.ITEMS):
            count += len(chunk)
            self._items_digest += _digest([item_id for item_id, _ in chunk])
            self._counted.contents_bytes += sum(len(decode_item(value)) for _, value in chunk)
            if chunk[-1][0] > self._counters.last_id:
                yield self._broken("I8", f"item {chunk[-1][0].hex()} is newer than last_id")
        return count

    def _check_entry(self, family: Family, item_id: bytes, size: int, item: bytes | None) -> str:
        if item is None:
            return f"{family.family_name} names item {item_id.hex()}, which does not exist"
        if len(decode_item(item)) != size:
            return f"{family.family_name} says {size} bytes for item {item_id.hex()}"
        return ""

    def _check_index(self, family: Family, low: bytes) -> Iterator[Violation]:
        for chunk in self._walk(family):
            ids = [due[TIME_BYTES:] for due, _ in chunk]
            self._entries_digest += _digest(ids)
            items = self._get_many(Family.ITEMS, ids)
            held = self._get_many(Family.IN_PROGRESS, ids)
            for (due, size), item, holder in zip(chunk, items, held, strict=True):
                item_id = due[TIME_BYTES:]
                if wrong := self._check_entry(family, item_id, decode_size(size), item):
                    yield self._broken("I2", wrong)
                if holder is not None:
                    yield self._broken(
                        "I1", f"{item_id.hex()} is in {family.family_name} and in_progress"
                    )
                if due < low:
                    yield self._broken("I6", f"{family.family_name} has {due.hex()} below its mark")
            if family is Family.DELAYED:
                self._counted.delayed += len(chunk)
            else:
                self._counted.ready += len(chunk)

    def _check_in_progress(self) -> Iterator[Violation]:
        for chunk in self._walk(Family.IN_PROGRESS):
            self._counted.in_progress += len(chunk)
            ids = [item_id for item_id, _ in chunk]
            self._entries_digest += _digest(ids)
            items = self._get_many(Family.ITEMS, ids)
            entries = [(item_id, *decode_in_progress(value)) for item_id, value in chunk]
            leases = self._get_many(Family.LEASES, [lease for _, lease, _ in entries])
            for (item_id, lease_id, size), item, lease in zip(entries, items, leases, strict=True):
                if wrong := self._check_entry(Family.IN_PROGRESS, item_id, size, item):
                    yield self._broken("I2", wrong)
                if lease is None or (item_id, size) not in split_held(decode_lease(lease)[1]):
                    yield self._broken(
                        "I3",
                        f"{item_id.hex()} names lease {lease_id.hex()}, which does not hold it",
                    )

    def _check_leases(self) -> Iterator[Violation]:
        for chunk in self._walk(Family.LEASES):
            self._counted.leases += len(chunk)
            for lease_id, value in chunk:
                expires_at_ms, held_bytes = decode_lease(value)
                held = split_held(held_bytes)
                if len({item_id for item_id, _ in held}) < len(held):
                    yield self._broken("I3", f"lease {lease_id.hex()} holds an item twice")
                if not held:
                    yield self._broken("I3", f"lease {lease_id.hex()} holds nothing")
                entries = self._get_many(Family.IN_PROGRESS, [item_id for item_id, _ in held])
                for (item_id, _), entry in zip(held, entries, strict=True):
                    if entry is None or decode_in_progress(entry)[0] != lease_id:
                        yield self._broken(
                            "I3",
                            f"lease {lease_id.hex()} holds {item_id.hex()}, which is elsewhere",
                        )
                key = self._prefix + due_part(expires_at_ms, lease_id)
                if self._store.get(Family.LEASE_EXPIRY, key) is None:
                    yield self._broken("I4", f"lease {lease_id.hex()} has no expiry entry")
                if lease_id > self._counters.last_id:
                    yield self._broken("I8", f"lease {lease_id.hex()} is newer than last_id")

    def _check_expiry(self) -> Iterator[Violation]:
        for chunk in self._walk(Family.LEASE_EXPIRY):
            for due, _ in chunk:
                at_ms, lease_id = split_due_part(due)
                lease = self._store.get(Family.LEASES, self._prefix + lease_id)
                if lease is None or decode_lease(lease)[0] != at_ms:
                    yield self._broken("I4", f"expiry entry {due.hex()} has no lease")
                if at_ms < self._counters.lease_due_ms:
                    yield self._broken("I6", f"lease_expiry has {due.hex()} below its mark")


def _digest(ids: list[bytes]) -> int:
    """Squares, so that no pair of wrong ids makes up for another."""
    return sum(int.from_bytes(item_id) ** 2 for item_id in ids)
