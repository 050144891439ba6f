"""The entries of one queue: a walk in chunks, reads below its number, a line for a violation."""

from queueber.db.families import Family
from queueber.engine.integrity.check_store import check_store
from queueber.engine.integrity.queue_entries import (
    CheckedQueue,
    InStep,
    QueueEntries,
    QueueWrites,
    Violation,
)
from queueber.errors import QueueberError
from queueber.model import QueueSettings
from tests.support.operations import create_queue
from tests.support.rig import QUEUE, Rig


def entries_of(rig: Rig) -> QueueEntries:
    return QueueEntries(rig.store, rig.queue.prefix)


def checked_queue(rig: Rig) -> CheckedQueue:
    return CheckedQueue(QUEUE, entries_of(rig), rig.queue.counters)


def test_violation_reads_as_a_line() -> None:
    assert str(Violation("I4", "orders", "has no expiry entry")) == "I4 orders: has no expiry entry"
    assert not issubclass(Violation, QueueberError)


def test_walk_gives_every_entry_of_the_queue_once_and_in_order(rig: Rig) -> None:
    create_queue(rig.engine, "other", QueueSettings(), rig.now_ms)
    lasts = [rig.add(b"x")[0] for _ in range(2500)]
    entries = entries_of(rig)

    chunks = list(entries.chunks(Family.ITEMS))

    assert [len(chunk) for chunk in chunks] == [1000, 1000, 500]
    assert [key for chunk in chunks for key, _ in chunk] == lasts
    assert [key for key, _ in entries.walk(Family.ITEMS)] == lasts
    assert [key for key, _ in entries.walk(Family.QUEUES)] == [b""]
    assert list(entries.chunks(Family.DEAD)) == []
    assert [entries.count(each) for each in (Family.ITEMS, Family.DEAD)] == [2500, 0]


def test_delete_all_deletes_the_queues_entries_of_a_family_alone(rig: Rig) -> None:
    create_queue(rig.engine, "other", QueueSettings(), rig.now_ms)
    rig.add(b"x", b"y")
    entries = entries_of(rig)
    batch = rig.store.batch()

    entries.delete_all(batch, Family.ITEMS)
    entries.delete_all(batch, Family.QUEUES)
    rig.store.write(batch)

    assert entries.count(Family.ITEMS) == entries.count(Family.QUEUES) == 0
    assert entries.count(Family.VISIBILITY_INDEX) == 1
    assert QueueEntries(rig.store, rig.engine.queues.get("other").prefix).count(Family.QUEUES) == 1


def test_get_and_get_many_read_below_the_queue(rig: Rig) -> None:
    (item_id,) = rig.add(b"x")
    entries = entries_of(rig)
    stored = rig.store.get(Family.ITEMS, rig.queue.prefix + item_id)

    assert entries.get(Family.ITEMS, item_id) == stored
    assert entries.get_many(Family.ITEMS, [bytes(16), item_id]) == [None, stored]


def test_broken_names_the_queue(rig: Rig) -> None:
    assert checked_queue(rig).broken("I1", "is nowhere") == Violation("I1", QUEUE, "is nowhere")


def test_check_store_reads_across_more_than_a_chunk(rig: Rig) -> None:
    lasts = [rig.add(b"x")[0] for _ in range(2500)]
    assert check_store(rig.store) == []
    batch = rig.store.batch()
    batch.delete(Family.ITEMS, rig.queue.prefix + lasts[2400])
    rig.store.write(batch)

    assert "I2" in {violation.rule for violation in check_store(rig.store)}


def test_writes_go_below_the_queue_and_need_a_flush_at_the_end(rig: Rig) -> None:
    create_queue(rig.engine, "other", QueueSettings(), rig.now_ms)
    entries = entries_of(rig)
    keys = [number.to_bytes(16) for number in range(2500)]
    writes = QueueWrites(entries)

    for key in keys:
        writes.put(Family.PLACES, key, b"")
    before = entries.count(Family.PLACES)
    writes.delete(Family.PLACES, keys[0])
    writes.flush()
    writes.flush()

    assert before == 2000
    assert [key for key, _ in entries.walk(Family.PLACES)] == keys[1:]
    writes.delete_all(Family.PLACES)
    writes.put(Family.PLACES, keys[5], b"")
    writes.flush()
    assert [key for key, _ in entries.walk(Family.PLACES)] == [keys[5]]
    assert len(rig.keys(Family.QUEUES)) == 2


def test_entries_in_step_are_taken_once_and_in_order() -> None:
    entries = InStep([(b"a", 1), (b"b", 2), (b"d", 3), (b"e", 4), (b"f", 5)])

    assert entries.up_to(b"b") == [(b"a", 1), (b"b", 2)]
    assert entries.up_to(b"c") == []
    assert entries.up_to(b"d") == [(b"d", 3)]
    assert list(entries.rest()) == [(b"e", 4), (b"f", 5)]
    assert list(InStep([]).rest()) == []
