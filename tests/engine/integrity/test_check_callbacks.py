"""Callbacks that break their rule are reported, and repaired."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

from queueber.db.families import Family
from queueber.db.records.callbacks import (
    CallbackRecord,
    callback_digest,
    callback_key,
    due_key,
    encode_callback,
)
from queueber.db.records.queues import encode_counters
from queueber.db.store.contract import Batch
from queueber.engine.integrity.check_store import check_store
from queueber.engine.integrity.rebuild_store import rebuild_store
from queueber.model import Callback, NewItems, QueueSettings
from tests.support.callbacks import batches_called_back, when_complete
from tests.support.operations import configure_queue
from tests.support.rig import QUEUE, START_MS, Rig

CALLBACK = Callback(QUEUE, b"report")
LIVE, COMPLETE, CALLED_BACK, UNKNOWN = 1, 2, 3, 9


@pytest.fixture
def rig() -> Iterator[Rig]:
    """A queue with a live batch, a complete one whose item it has no room for, and another."""
    made = Rig()
    made.add_items(NewItems([b"x"], batch="live", priorities=[0]))
    for name in ("complete", "called back"):
        made.add_items(NewItems([b"y"], batch=name, priorities=[9]))
    when_complete(made.engine, made.queue, "live", CALLBACK, made.now_ms)
    polled = made.poll(2)
    made.remove(polled.ids, polled.lease_id)
    when_complete(made.engine, made.queue, "called back", CALLBACK, made.now_ms)
    configure_queue(made.engine, QUEUE, QueueSettings(items_max=1), made.now_ms)
    when_complete(made.engine, made.queue, "complete", CALLBACK, made.now_ms)
    yield made
    made.close()


@dataclass(frozen=True)
class Case:
    rule: str
    text: str
    damage: Callable[[Rig, Batch], None]
    left: tuple[str, ...] = ("called back", "complete")
    """What has been called back once there is room."""


def _put(number: int, value: bytes | None = None) -> Callable[[Rig, Batch], None]:
    record = CallbackRecord(CALLBACK, START_MS, callback_digest(CALLBACK))

    def damage(rig: Rig, batch: Batch) -> None:
        encoded = encode_callback(record) if value is None else value
        batch.put(Family.CALLBACKS, rig.queue.prefix + callback_key(number), encoded)

    return damage


def _put_due(number: int, to: bytes = b"q") -> Callable[[Rig, Batch], None]:
    return lambda rig, batch: batch.put(Family.CALLBACKS, rig.queue.prefix + due_key(number), to)


def _not_due(rig: Rig, batch: Batch) -> None:
    batch.delete(Family.CALLBACKS, rig.queue.prefix + due_key(COMPLETE))


def _miscount(rig: Rig, batch: Batch) -> None:
    counters = rig.queue.counters.copy()
    counters.callbacks += 1
    batch.put(Family.COUNTERS, rig.queue.prefix, encode_counters(counters))


CASES = [
    Case("I24", "a callback belongs to batch 9, which does not exist", _put(UNKNOWN)),
    Case("I24", "the callback of batch 2 must be due", _not_due),
    Case("I24", "the callback of batch 1 must not be due", _put_due(LIVE)),
    Case("I24", "the callback of batch 3 must not be due", _put_due(CALLED_BACK)),
    Case("I24", "the callback of batch 2 must not be due", _put_due(COMPLETE, b"r")),
    Case("I24", "3 callbacks, of which 2 wait, but 3 and 3 are counted", _miscount),
    Case("I7", "cannot be read", _put(COMPLETE, b"\xff" * 8), ("called back",)),
]


@pytest.mark.parametrize("case", CASES, ids=[case.text for case in CASES])
def test_damage_is_told_and_repaired(rig: Rig, case: Case) -> None:
    assert check_store(rig.store) == []
    batch = rig.store.batch()
    case.damage(rig, batch)
    rig.store.write(batch)

    found = check_store(rig.store)
    assert {each.rule for each in found} == {case.rule}
    assert case.text in found[0].text
    list(rebuild_store(rig.store))

    assert check_store(rig.store) == []
    rig.reopen()
    configure_queue(rig.engine, QUEUE, QueueSettings(), rig.now_ms)
    rig.sweep_all()
    assert tuple(batches_called_back(rig.engine, QUEUE)) == case.left
