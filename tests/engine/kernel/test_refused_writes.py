"""A write that the store refuses changes nothing, on disk or in memory, whatever it was."""

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from queueber.db.families import Family
from queueber.errors import Unavailable
from queueber.limits import DAY_MS, MIB
from queueber.model import ItemState, NewItems, Producer, QueueSettings
from tests.support.ending import expire_together
from tests.support.operations import (
    cancel,
    configure_queue,
    create_queue,
    delete_queue,
    expire,
    extend,
    forget,
    pause,
    peek,
    promote,
    purge,
    redrive,
    redrive_first,
    release_lease,
    resume,
)
from tests.support.rig import QUEUE, Rig, refuse_write

PRODUCER = Producer("p", epoch=1, sequence=1)


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
    return [item_id for item_id, _ in rig.held()]


def _make_due(rig: Rig) -> None:
    _leased(rig)
    rig.now_ms += 100


def _add(rig: Rig, column: str) -> object:
    columns: dict[str, NewItems] = {
        "keys": NewItems([b"x", b"y"], keys=["k", "l"]),
        "priorities": NewItems([b"x", b"y"], priorities=[9, 0]),
        "attributes": NewItems([b"x"], attributes=[{"a": "b"}]),
        "batch": NewItems([b"x"], batch="new"),
        "producer": NewItems([b"x"], producer=PRODUCER),
    }
    return rig.add_items(columns[column])


def _special(rig: Rig) -> None:
    """Two held items that have all that an item may have."""
    rig.add_items(
        NewItems([b"a", b"b"], priorities=[9, 9], keys=["k", "l"], batch="b", producer=PRODUCER)
    )
    rig.poll(2, lease_ms=100)


def _last_attempt(rig: Rig) -> None:
    configure_queue(rig.engine, QUEUE, QueueSettings(attempts_max=1), rig.now_ms)
    _special(rig)


def _dead(rig: Rig) -> None:
    _last_attempt(rig)
    rig.fail(_held(rig), _lease(rig))


def _every_state(rig: Rig) -> None:
    _dead(rig)
    rig.add(b"held")
    rig.poll()
    rig.add(b"ready", b"delayed", delays_ms=[0, 100])


def _forgettable(rig: Rig) -> None:
    _special(rig)
    rig.complete(_held(rig), _lease(rig))
    rig.now_ms += 10 * DAY_MS


def _paused(rig: Rig) -> None:
    _leased(rig)
    pause(rig.engine, rig.queue, rig.now_ms + 50)


def _ids(rig: Rig) -> list[bytes]:
    return rig.stored_ids()


def _of_state(rig: Rig, state: ItemState) -> list[bytes]:
    return [each.id for each in peek(rig.engine, rig.queue, state, b"", 10, MIB)[0]]


OPERATIONS = [
    Operation("add", _leased, lambda rig: rig.add(b"x", b"y", delays_ms=[0, 5])),
    Operation("poll", lambda rig: rig.add(b"a", b"b"), lambda rig: rig.poll(2)),
    Operation("poll of a part", lambda rig: rig.add(b"a", b"b"), lambda rig: rig.poll(1)),
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
        "expire_together",
        _leased,
        lambda rig: expire_together(rig.engine, rig.queue, [_lease(rig)], rig.now_ms),
    ),
    Operation(
        "create_queue",
        _leased,
        lambda rig: create_queue(rig.engine, "new", QueueSettings(), rig.now_ms),
    ),
    Operation(
        "configure_queue",
        _leased,
        lambda rig: configure_queue(rig.engine, QUEUE, QueueSettings(items_max=9), rig.now_ms),
    ),
    *[
        Operation(f"add with {column}", _leased, lambda rig, column=column: _add(rig, column))  # type: ignore[misc]
        for column in ("keys", "priorities", "attributes", "batch", "producer")
    ],
    Operation("complete", _leased, lambda rig: rig.complete(_held(rig), _lease(rig))),
    Operation("complete some", _special, lambda rig: rig.complete(_held(rig)[:1], _lease(rig))),
    Operation("fail", _special, lambda rig: rig.fail(_held(rig)[:1], _lease(rig))),
    Operation("fail at once", _special, lambda rig: rig.fail(_held(rig), _lease(rig), "no", 0)),
    Operation("fail for good", _last_attempt, lambda rig: rig.fail(_held(rig), _lease(rig))),
    Operation("release", _special, lambda rig: rig.release(_held(rig)[:1], _lease(rig))),
    Operation(
        "release_lease",
        _special,
        lambda rig: release_lease(rig.engine, rig.queue, _lease(rig), rig.now_ms),
    ),
    Operation("redrive", _dead, lambda rig: redrive(rig.engine, rig.queue, _ids(rig), rig.now_ms)),
    Operation("redrive_first", _dead, lambda rig: redrive_first(rig.engine, rig.queue, 1, 5)),
    *[
        Operation(
            f"cancel of {state.value}",
            _every_state,
            lambda rig, state=state: cancel(  # type: ignore[misc]
                rig.engine, rig.queue, _of_state(rig, state)[:1], rig.now_ms
            ),
        )
        for state in ItemState
    ],
    *[
        Operation(
            f"purge of {state.value}",
            _every_state,
            lambda rig, state=state: purge(rig.engine, rig.queue, state, 1, rig.now_ms),  # type: ignore[misc]
        )
        for state in ItemState
    ],
    Operation("forget", _forgettable, lambda rig: forget(rig.engine, rig.queue, rig.now_ms, 100)),
    Operation("pause", _leased, lambda rig: pause(rig.engine, rig.queue, rig.now_ms + 50)),
    Operation("resume", _paused, lambda rig: resume(rig.engine, rig.queue)),
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
    assert rig.engine.queues.get(QUEUE) is queue
    rig.assert_sound()

    assert operation.run(rig) is not False
    assert rig.dump() != disk
    rig.assert_sound()
    rig.reopen()
    rig.assert_sound()
