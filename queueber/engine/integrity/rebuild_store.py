"""Rebuild a store in which some entries are missing or broken, so that every rule holds again.

Sound queues and topics stay as they are. Of a broken queue every item that can be read is kept, of
a broken topic the newest messages without a gap. Entries that break a rule and cannot be corrected
are dropped and counted. `queueber repair` runs this on a copy.
"""

from collections import Counter
from collections.abc import Iterator

from queueber.db.families import QUEUE_FAMILIES, Family
from queueber.db.records.keys import PREFIX_BYTES, split_queue_prefix
from queueber.db.records.queues import (
    Counters,
    decode_counters,
    decode_queue,
    encode_counters,
    encode_queue,
)
from queueber.db.store.contract import Store
from queueber.db.store.format import check_format
from queueber.engine.integrity.check_callbacks import rebuild_callbacks
from queueber.engine.integrity.check_schedules import rebuild_schedules
from queueber.engine.integrity.check_store import check_store
from queueber.engine.integrity.check_waits import rebuild_waits
from queueber.engine.integrity.logs import completed_items, rebuild_log
from queueber.engine.integrity.lost_records import drop_odd_keys, recover_topics
from queueber.engine.integrity.owners import OF_TOPICS, Owners
from queueber.engine.integrity.queue_entries import QueueEntries, readable
from queueber.engine.integrity.rebuild_agenda import rebuild_agenda, rebuild_default
from queueber.engine.integrity.rebuild_items import ItemsRebuild
from queueber.engine.integrity.rebuild_topics import TopicsRebuild
from queueber.engine.integrity.records import HALF_COMMITTED, RecordsRebuild
from queueber.engine.kernel.transaction import NEXT_NUMBER_KEY
from queueber.engine.queue.queues import LAST_ID_KEY
from queueber.limits import ID_BYTES
from queueber.model import QueueSettings

_ALL = 1_000_000
_LAST_KEY = b"\xff" * 64


def rebuild_store(store: Store) -> Iterator[str]:
    """Make every rule hold again. Yields a sentence for each kind of loss in each queue."""
    _rebuild_default(store, _prefixes(store))
    broken = broken_queues(store)
    if not broken:
        return
    drop_odd_keys(store)
    yield from recover_topics(store)
    owners = Owners(store)
    prefixes = [each for each in _prefixes(store) if not owners.has(each, OF_TOPICS)]
    yield from _rebuild_queues(store, prefixes, broken)
    topics = TopicsRebuild(store)
    yield from topics.run(broken)
    yield from rebuild_schedules(store)
    rebuild_default(store, topics.records)
    rebuild_agenda(store, topics.records)


def _rebuild_queues(store: Store, prefixes: list[bytes], broken: set[str]) -> Iterator[str]:
    taken = _names(store)
    for prefix in prefixes:
        number = split_queue_prefix(prefix)
        name = taken.get(prefix)
        if name is None:
            name = f"recovered-{number}"
            yield f"{name}: the record of queue number {number} was lost, with name and settings"
            batch = store.batch()
            batch.put(Family.QUEUES, prefix, encode_queue(name, 0, QueueSettings()))
            store.write(batch)
        elif name not in broken and f"#{number}" not in broken and "-" not in broken:
            continue
        for what, count in _rebuild_queue(store, prefix).items():
            yield f"{name}: {count} {what}"


def broken_queues(store: Store) -> set[str]:
    """The names of queues and topics that break a rule; `#` and the number of one without a
    name."""
    return {
        violation.queue
        for violation in check_store(store, _ALL)
        if HALF_COMMITTED not in violation.text  # the next start finishes the load
    }


def _rebuild_queue(store: Store, prefix: bytes) -> Counter[str]:
    """What was lost, and how often."""
    counters = readable(decode_counters, store.get(Family.COUNTERS, prefix) or b"") or Counters()
    lost: Counter[str] = Counter()
    head = rebuild_log(store, prefix, lost)
    entries = QueueEntries(store, prefix)
    records = RecordsRebuild(entries, lost)
    records.read_batches()
    completed = completed_items(entries)
    items = ItemsRebuild(entries, counters, set(records.batches), completed, lost)
    items.run()
    records.run(counters, items.live)
    lost.update(rebuild_callbacks(entries, records.batches, counters))
    lost.update(rebuild_waits(entries, records.batches, counters))
    # The totals must add up to what is left: all of it was added, and has not ended.
    counters.completed_total = head.next_offset
    ended = counters.removed_total + counters.completed_total + counters.cancelled_total
    ended += counters.dead_dropped_total
    counters.added_total = counters.items + ended
    batch = store.batch()
    batch.put(Family.COUNTERS, prefix, encode_counters(counters))
    store.write(batch)
    return lost


def _prefixes(store: Store) -> list[bytes]:
    """The prefix of every queue that has any entry."""
    found = set()
    for family in QUEUE_FAMILIES:
        start = b""
        while entries := store.scan(family, start, _LAST_KEY, 1):
            prefix = entries[0][0][:PREFIX_BYTES]
            if len(prefix) == PREFIX_BYTES:
                found.add(prefix)
            start = prefix + b"\xff" * 64
    return sorted(found)


def _names(store: Store) -> dict[bytes, str]:
    names: dict[bytes, str] = {}
    for prefix, record in store.walk(Family.QUEUES, b"", _LAST_KEY):
        queue = readable(decode_queue, record)
        if queue is not None and queue[0] not in names.values():
            names[prefix] = queue[0]
    return names


def _rebuild_default(store: Store, prefixes: list[bytes]) -> None:
    """Correct the entries of the family `default`."""
    batch = store.batch()
    check_format(store.get(Family.DEFAULT, b"format"), is_empty=False)
    highest = max([split_queue_prefix(prefix) for prefix in prefixes], default=0)
    stored = int.from_bytes(store.get(Family.DEFAULT, NEXT_NUMBER_KEY) or b"\1")
    if stored <= highest:
        batch.put(Family.DEFAULT, NEXT_NUMBER_KEY, (highest + 1).to_bytes(4))
    if len(store.get(Family.DEFAULT, LAST_ID_KEY) or bytes(ID_BYTES)) != ID_BYTES:
        batch.delete(Family.DEFAULT, LAST_ID_KEY)
    store.write(batch)
