"""The engine's memory: rebuilt from the store, all of it but the windows."""

import pytest

from queueber.db.families import QUEUE_FAMILIES, Family
from queueber.errors import StorageCorrupt
from queueber.model import FailOutcome, LoadRef, NewItems, Producer, QueueSettings
from tests.engine.making import (
    come_back_at_once,
    expire_one,
    own_options_and_callback,
    park_one,
    schedule_one,
    wait_for_one,
)
from tests.support.operations import (
    acknowledge,
    begin_load,
    configure_queue,
    create_queue,
    loads_under_way,
    pause,
    route_queue,
)
from tests.support.rig import QUEUE, Rig

PRODUCER = Producer("p", epoch=1, sequence=1)


def busy(rig: Rig) -> None:
    """Something in every family: leases, items of every state, results, and past totals."""
    configure_queue(rig.engine, QUEUE, QueueSettings(attempts_max=2), rig.now_ms)
    rig.add(*[b"x" * n for n in range(12)])
    rig.add(b"d", b"e", b"f", delays_ms=[100, 100, 900])
    one, two = rig.poll_many([2, 3], lease_ms=100)
    three = rig.poll(2, lease_ms=800)
    rig.remove(one.ids[:1], one.lease_id)
    rig.extend(two.lease_id, 150)
    rig.fail(two.ids[:1], two.lease_id, delay_ms=0)
    rig.complete(three.ids[:1], three.lease_id)
    rig.add_items(
        NewItems([b"h", b"l"], priorities=[9, 0], keys=["k", ""], batch="b", producer=PRODUCER)
    )
    high = rig.poll(lease_ms=900)
    rig.fail(high.ids, high.lease_id, delay_ms=0)
    high = rig.poll(lease_ms=900)
    assert rig.fail(high.ids, high.lease_id) == [FailOutcome.DIED]
    acknowledge(rig.store, rig.queue.results, "reader", 0)
    ref = LoadRef("load")
    begin_load(rig.engine, rig.queue, ref, batch="b", timeout_ms=500, token=b"", now_ms=rig.now_ms)
    route_queue(rig.engine, QUEUE, rig.now_ms)
    own_options_and_callback(rig)
    park_one(rig)
    schedule_one(rig)
    expire_one(rig)
    wait_for_one(rig)


# --- reopening ------------------------------------------------------------------------------------


def test_reopen_gives_back_the_state_as_it_was(rig: Rig) -> None:
    busy(rig)
    assert all(rig.keys(family) for family in (Family.DEFAULT, *QUEUE_FAMILIES))
    create_queue(rig.engine, "other", QueueSettings(items_max=3), rig.now_ms)
    pause(rig.engine, rig.queue, rig.now_ms + 5000)
    disk, stats, memory = rig.dump(), rig.stats(), rig.memory()
    loads = loads_under_way(rig.engine, rig.queue)

    rig.reopen()

    assert rig.dump() == disk
    assert rig.stats() == stats
    again = rig.memory()
    assert (again.names, again.next_queue_id) == (memory.names, memory.next_queue_id)
    # Not later: a queue with a rate by an attribute may be looked at once after the start.
    assert again.agenda_ms <= memory.agenda_ms
    for name, before in memory.queues.items():
        # All but the windows, which are filled when they are needed.
        assert again.queues[name][:3] == before[:3]
        assert again.queues[name][4:] == before[4:]
    assert rig.queue.results.readers == {"reader": 0}
    assert loads_under_way(rig.engine, rig.queue) == loads != {}
    rig.assert_sound()


def test_reopen_goes_on_as_if_nothing_had_been(rig: Rig) -> None:
    """The same steps with and without a restart before each of them end in the same place."""
    twin = Rig()
    try:
        for each in (rig, twin):
            busy(each)
        seen: dict[str, list[object]] = {"rig": [], "twin": []}

        for name, each in (("rig", rig), ("twin", twin)):
            for passed_ms in (0, 99, 1, 50, 700, 500):
                if name == "twin":
                    each.reopen()
                each.now_ms += passed_ms
                each.sweep_all()
                polled = each.poll(2, lease_ms=60)
                seen[name].append((polled.contents, each.stats()))
                each.assert_sound()

        assert seen["rig"] == seen["twin"]
    finally:
        twin.close()


def test_reopen_schedules_what_is_due(rig: Rig) -> None:
    come_back_at_once(rig)
    rig.add(b"a", b"b", delays_ms=[0, 300])
    rig.poll(lease_ms=100)

    rig.reopen()

    assert rig.engine.agenda.next_ms() == rig.now_ms + 100
    rig.now_ms += 300
    assert sum(s.expired for s in rig.sweep_all()) == 1
    assert rig.stats().ready == 2


def test_reopen_after_the_clock_stepped_back_mints_greater_ids(rig: Rig) -> None:
    rig.add(b"a")
    newest = rig.poll().lease_id
    rig.now_ms -= 3_600_000

    rig.reopen()

    assert rig.add(b"b")[0] > newest


@pytest.mark.parametrize("family", [Family.QUEUES, Family.COUNTERS])
def test_open_with_a_record_that_cannot_be_read_is_refused(rig: Rig, family: Family) -> None:
    batch = rig.store.batch()
    batch.put(family, rig.queue.prefix, b"\xff" * 24)
    rig.store.write(batch)

    with pytest.raises(StorageCorrupt, match="records of queue number 1 cannot be read"):
        rig.reopen()


def test_open_of_a_queue_without_counters_is_refused(rig: Rig) -> None:
    batch = rig.store.batch()
    batch.delete(Family.COUNTERS, rig.queue.prefix)
    rig.store.write(batch)

    with pytest.raises(StorageCorrupt, match="records of queue number 1 cannot be read"):
        rig.reopen()
