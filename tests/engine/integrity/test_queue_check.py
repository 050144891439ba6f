"""What the checks of one queue share: a walk in chunks, and a line for what is wrong."""

from queueber.db.families import Family
from queueber.engine.integrity.check_store import check_store
from queueber.engine.integrity.queue_check import QueueCheck, Violation
from queueber.errors import QueueberError
from queueber.model import QueueSettings
from tests.support.operations import create_queue
from tests.support.rig import QUEUE, Rig


def check_of(rig: Rig) -> QueueCheck:
    return QueueCheck(rig.store, QUEUE, rig.queue.prefix, rig.queue.counters)


def test_violation_reads_as_a_line() -> None:
    assert str(Violation("I4", "orders", "has no expiry entry")) == "I4 orders: has no expiry entry"
    assert not issubclass(Violation, QueueberError)


def test_walk_gives_every_entry_of_the_queue_once_and_in_order(rig: Rig) -> None:
    create_queue(rig.engine, "other", QueueSettings(), rig.now_ms)
    ids = rig.add(*[b"x"] * 2500)
    check = check_of(rig)

    chunks = list(check._walk(Family.ITEMS))

    assert [len(chunk) for chunk in chunks] == [1000, 1000, 500]
    assert [key for chunk in chunks for key, _ in chunk] == ids
    assert [key for key, _ in check._entries(Family.ITEMS)] == ids
    assert [key for key, _ in check._entries(Family.QUEUES)] == [b""]
    assert list(check._walk(Family.DEAD)) == []


def test_get_and_get_many_read_below_the_queue(rig: Rig) -> None:
    (item_id,) = rig.add(b"x")
    check = check_of(rig)
    stored = rig.store.get(Family.ITEMS, rig.queue.prefix + item_id)

    assert check._get(Family.ITEMS, item_id) == stored
    assert check._get_many(Family.ITEMS, [bytes(16), item_id]) == [None, stored]


def test_broken_names_the_queue(rig: Rig) -> None:
    assert check_of(rig)._broken("I1", "is nowhere") == Violation("I1", QUEUE, "is nowhere")


def test_check_store_reads_across_more_than_a_chunk(rig: Rig) -> None:
    ids = rig.add(*[b"x"] * 2500)
    assert check_store(rig.store) == []
    batch = rig.store.batch()
    batch.delete(Family.ITEMS, rig.queue.prefix + ids[2400])
    rig.store.write(batch)

    assert "I2" in {violation.rule for violation in check_store(rig.store)}
