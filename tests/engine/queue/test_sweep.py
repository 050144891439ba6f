"""Sweep: what is due is done in slices, the queue that is due first comes first."""

import pytest

from queueber.db.families import Family
from queueber.db.records.keys import NEVER_MS
from queueber.errors import Unavailable
from queueber.limits import MIB, STORE_RETRY_MS, SWEEP_SLICE_ITEMS
from queueber.model import NewItems, QueueSettings, Sweep
from tests.engine.making import come_back_at_once
from tests.support.operations import (
    acknowledge,
    add,
    configure_queue,
    create_queue,
    delete_queue,
    pause,
    poll,
    sweep,
)
from tests.support.rig import QUEUE, Rig, refuse_write


def test_sweep_of_an_idle_engine_is_none_and_changes_nothing(rig: Rig) -> None:
    rig.add(b"a")
    disk, memory = rig.dump(), rig.memory()

    assert sweep(rig.engine, rig.now_ms + 10**9) is None

    assert rig.dump() == disk
    assert rig.memory() == memory
    assert rig.engine.agenda.next_ms() == NEVER_MS


def test_sweep_before_its_time_is_none_and_changes_nothing(rig: Rig) -> None:
    rig.add(b"a", b"b", delays_ms=[0, 100])
    rig.poll(lease_ms=100)
    disk, memory = rig.dump(), rig.memory()

    assert sweep(rig.engine, rig.now_ms + 99) is None

    assert rig.dump() == disk
    assert rig.memory() == memory


def test_sweep_expires_and_promotes_in_one_go(rig: Rig) -> None:
    come_back_at_once(rig)
    rig.add(b"a", b"b", b"c", delays_ms=[0, 100, 100])
    rig.poll(lease_ms=100)
    rig.now_ms += 100

    assert sweep(rig.engine, rig.now_ms) == Sweep(QUEUE, expired=1, promoted=2)

    assert sweep(rig.engine, rig.now_ms) is None
    assert rig.engine.agenda.next_ms() == NEVER_MS
    rig.assert_sound()


def test_sweep_with_more_to_come_is_due_again_then(rig: Rig) -> None:
    rig.add(b"a", b"b", delays_ms=[10, 500])
    rig.now_ms += 10

    rig.sweep_all()

    assert rig.engine.agenda.next_ms() == rig.now_ms + 490


def test_sweep_takes_the_queue_that_is_due_first(rig: Rig) -> None:
    for name, delay_ms in (("late", 30), ("early", 10), ("middle", 20)):
        create_queue(rig.engine, name, QueueSettings(), rig.now_ms)
        add(rig.engine, rig.engine.queues.get(name), NewItems([b"x"], [delay_ms]), rig.now_ms)
    rig.now_ms += 30

    assert [s.queue_name for s in rig.sweep_all()] == ["early", "middle", "late"]


def test_sweep_moves_at_most_a_slice_of_each_kind_at_a_time(rig: Rig) -> None:
    count = 2 * SWEEP_SLICE_ITEMS + 5
    rig.add(*[b"x"] * count)
    poll(
        rig.engine,
        rig.queue,
        [1] * count,
        lease_ms=10,
        answer_bytes_max=MIB,
        now_ms=rig.now_ms,
    )
    # Neighbours with different times, so each is a run.
    rig.add(*[b"y"] * 1500, delays_ms=[9, 10] * 750)
    rig.now_ms += 10

    slices = rig.sweep_all()

    assert [s.expired for s in slices if s.expired] == [1000, 1000, 5]
    assert [s.promoted for s in slices if s.promoted] == [1000, 500]
    assert len(slices) <= 4
    rig.assert_sound()


def test_sweep_in_small_slices_ends_in_the_same_state_as_in_one(rig: Rig) -> None:
    rig.add(*[b"x"] * 40)
    rig.poll_many([3, 1, 5, 2, 9], lease_ms=10)
    rig.add(*[b"y"] * 30, delays_ms=[10 + n % 3 for n in range(30)])
    rig.now_ms += 20
    twin = Rig()
    try:
        twin.add(*[b"x"] * 40)
        twin.poll_many([3, 1, 5, 2, 9], lease_ms=10)
        twin.add(*[b"y"] * 30, delays_ms=[10 + n % 3 for n in range(30)])
        twin.now_ms += 20
        assert twin.dump() == rig.dump()

        rig.sweep_all(items_max=1)
        twin.sweep_all()

        # Only the low-water marks may differ: the last slice of several finds nothing to write.
        assert {**rig.dump(), "counters": []} == {**twin.dump(), "counters": []}
        assert rig.stats() == twin.stats()
        rig.assert_sound()
        assert rig.engine.agenda.next_ms() == twin.engine.agenda.next_ms()
    finally:
        twin.close()


def test_sweep_does_not_look_at_a_deleted_queue(rig: Rig) -> None:
    rig.add(b"a", delays_ms=[10])
    delete_queue(rig.engine, QUEUE)

    assert sweep(rig.engine, rig.now_ms + 10) is None
    assert rig.engine.agenda.next_ms() == NEVER_MS


def test_sweep_that_the_store_refuses_is_tried_again_after_a_while(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig.add(b"a", b"b", delays_ms=[0, 100])
    rig.poll(lease_ms=100)
    rig.now_ms += 100
    disk = rig.dump()
    with monkeypatch.context() as fault:
        fault.setattr(rig.store, "write", refuse_write)

        with pytest.raises(Unavailable):
            sweep(rig.engine, rig.now_ms)

    assert rig.dump() == disk
    assert rig.engine.agenda.next_ms() == rig.now_ms + STORE_RETRY_MS
    assert sweep(rig.engine, rig.now_ms + STORE_RETRY_MS - 1) is None
    rig.now_ms += STORE_RETRY_MS
    assert rig.sweep_all()[0] == Sweep(QUEUE, expired=1, promoted=1)
    rig.assert_sound()


def test_sweep_that_found_only_removed_leases_is_not_due_again(rig: Rig) -> None:
    rig.add(b"a")
    polled = rig.poll(lease_ms=10)
    rig.remove(polled.ids, polled.lease_id)
    rig.now_ms += 10

    assert rig.sweep_all() == [Sweep(QUEUE, expired=0, promoted=0)]

    assert rig.engine.agenda.next_ms() == NEVER_MS


def test_sweep_does_all_that_is_due_in_one_go(rig: Rig) -> None:
    """A lease, a delay, a key, a pause and a result, all due in the same millisecond."""
    settings = QueueSettings(backoff_ms=(0,), dedup_window_ms=100, result_age_ms=100)
    configure_queue(rig.engine, QUEUE, settings, rig.now_ms)
    rig.add_items(NewItems([b"a"], keys=["k"]))
    rig.add_items(NewItems([b"b", b"c"], [0, 100]))
    done = rig.poll()
    rig.complete(done.ids, done.lease_id)
    rig.poll(lease_ms=100)
    pause(rig.engine, rig.queue, rig.now_ms + 100)
    assert rig.engine.agenda.next_ms() == rig.now_ms + 100
    rig.now_ms += 100

    assert sweep(rig.engine, rig.now_ms) == Sweep(QUEUE, expired=1, promoted=1, resumed=True)

    assert sweep(rig.engine, rig.now_ms) is None
    stats = rig.stats()
    assert (stats.ready, stats.results, stats.paused_until_ms) == (2, 0, 0)
    assert rig.keys(Family.KEYS) == rig.keys(Family.FORGET) == []
    assert rig.engine.agenda.next_ms() == NEVER_MS
    rig.assert_sound()


def test_sweep_deletes_results_that_every_reader_is_done_with(rig: Rig) -> None:
    rig.add(b"a")
    polled = rig.poll()
    rig.complete(polled.ids, polled.lease_id)
    acknowledge(rig.store, rig.queue.results, "reader", 1)
    rig.engine.agenda.schedule(rig.queue.queue_id, rig.now_ms)

    rig.sweep_all()

    assert rig.stats().results == 0
    assert rig.keys(Family.LOG_BLOCKS) == []
    rig.assert_sound()
