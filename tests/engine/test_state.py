"""The engine's memory: rebuilt from the store, and unchanged by a write that was refused."""

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from queueber.db.families import Family
from queueber.engine.expire import expire, expire_lease
from queueber.engine.extend import extend
from queueber.engine.promote import promote
from queueber.engine.queues import configure_queue, create_queue, delete_queue
from queueber.errors import StorageCorrupt, Unavailable
from queueber.model import QueueSettings
from tests.support.rig import QUEUE, Rig, refuse_write


def busy(rig: Rig) -> None:
    """Something in every family: two leases, ready and delayed items, and past totals."""
    rig.add(*[b"x" * n for n in range(12)])
    rig.add(b"d", b"e", b"f", delays_ms=[100, 100, 900])
    one, two = rig.poll_many([2, 3], lease_ms=100)
    rig.poll(2, lease_ms=800)
    rig.remove(one.ids[:1], one.lease_id)
    rig.extend(two.lease_id, 150)


# --- reopening ------------------------------------------------------------------------------------


def test_reopen_gives_back_the_state_as_it_was(rig: Rig) -> None:
    busy(rig)
    create_queue(rig.engine, "other", QueueSettings(items_max=3), rig.now_ms)
    disk, stats, memory = rig.dump(), rig.stats(), rig.memory()

    rig.reopen()

    assert rig.dump() == disk
    assert rig.stats() == stats
    again = rig.memory()
    assert (again.names, again.next_queue_id) == (memory.names, memory.next_queue_id)
    assert again.agenda_ms == memory.agenda_ms
    for name, (queue_id, settings, counters, *_) in memory.queues.items():
        assert again.queues[name][:3] == (queue_id, settings, counters)
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


# --- writes that the store refuses ----------------------------------------------------------------


@dataclass(frozen=True)
class Operation:
    name: str
    prepare: Callable[[Rig], object]
    run: Callable[[Rig], object]


def _leased(rig: Rig) -> None:
    rig.add(b"a", b"b", b"c", delays_ms=[0, 0, 100])
    rig.poll(2, lease_ms=100)


def _lease(rig: Rig) -> bytes:
    return rig.keys(Family.LEASES)[0][4:]


def _held(rig: Rig) -> list[bytes]:
    return [key[4:] for key in rig.keys(Family.IN_PROGRESS)]


def _make_due(rig: Rig) -> None:
    _leased(rig)
    rig.now_ms += 100


OPERATIONS = [
    Operation("add", _leased, lambda rig: rig.add(b"x", b"y", delays_ms=[0, 5])),
    Operation("poll", lambda rig: rig.add(b"a", b"b"), lambda rig: rig.poll(1)),
    Operation("remove some", _leased, lambda rig: rig.remove(_held(rig)[:1], _lease(rig))),
    Operation("remove all", _leased, lambda rig: rig.remove(_held(rig), _lease(rig))),
    Operation(
        "extend",
        _leased,
        lambda rig: extend(rig.engine, rig.queue, [_lease(rig)], [5], rig.now_ms),
    ),
    Operation("expire", _make_due, lambda rig: expire(rig.engine, rig.queue, rig.now_ms, 100)),
    Operation("promote", _make_due, lambda rig: promote(rig.engine, rig.queue, rig.now_ms, 100)),
    Operation(
        "expire_lease",
        _leased,
        lambda rig: expire_lease(rig.engine, rig.queue, _lease(rig), rig.now_ms),
    ),
    Operation(
        "create_queue",
        _leased,
        lambda rig: create_queue(rig.engine, "new", QueueSettings(), rig.now_ms),
    ),
    Operation(
        "configure_queue",
        _leased,
        lambda rig: configure_queue(rig.engine, QUEUE, QueueSettings(items_max=9)),
    ),
    Operation("delete_queue", _leased, lambda rig: delete_queue(rig.engine, QUEUE)),
]


@pytest.mark.parametrize("operation", OPERATIONS, ids=[each.name for each in OPERATIONS])
def test_operation_that_the_store_refuses_changes_nothing_and_works_afterwards(
    rig: Rig, operation: Operation, monkeypatch: pytest.MonkeyPatch
) -> None:
    operation.prepare(rig)
    queue = rig.queue
    disk, memory = rig.dump(), rig.memory()
    with monkeypatch.context() as fault:
        fault.setattr(rig.store, "write", refuse_write)

        with pytest.raises(Unavailable, match="full"):
            operation.run(rig)

    assert rig.dump() == disk
    assert rig.memory() == memory
    assert rig.engine.queue(QUEUE) is queue
    rig.assert_sound()

    assert operation.run(rig) is not False
    assert rig.dump() != disk
    rig.assert_sound()
    rig.reopen()
    rig.assert_sound()
