"""Schedules that break their rule are reported, and repaired."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from queueber.db.families import Family
from queueber.db.records.schedules import ScheduleRecord, encode_schedule, schedule_key
from queueber.db.store.contract import Batch
from queueber.engine.integrity.check_store import check_store
from queueber.engine.integrity.rebuild_store import rebuild_store
from queueber.model import QueueSettings, Schedule
from tests.support.operations import create_queue
from tests.support.rig import QUEUE, START_MS, Rig
from tests.support.schedules import put_schedule

OTHER = "other"


@pytest.fixture
def rig() -> Iterator[Rig]:
    made = Rig()
    create_queue(made.engine, OTHER, QueueSettings(), made.now_ms)
    for name in ("a", "b"):
        put_schedule(made.engine, Schedule(name, "0 3 * * *", QUEUE, b"x"), made.now_ms)
    yield made
    made.close()


@dataclass(frozen=True)
class Case:
    rule: str
    text: str
    damage: Callable[[Rig, Batch], None]
    left: tuple[str, ...] = ("b",)


def _put(when: str = "@daily", zone: str = "UTC", **fields: Any) -> Callable[[Rig, Batch], None]:
    def damage(rig: Rig, batch: Batch) -> None:
        record = ScheduleRecord(Schedule("a", when, QUEUE, zone=zone), START_MS, START_MS + 9)
        encoded = encode_schedule(record._replace(**fields))
        batch.put(Family.SCHEDULES, schedule_key(rig.queue.queue_id, "a"), encoded)

    return damage


def _put_twice(rig: Rig, batch: Batch) -> None:
    record = ScheduleRecord(Schedule("a", "@daily", OTHER), START_MS, START_MS + 9)
    key = schedule_key(rig.engine.queues.get(OTHER).queue_id, "a")
    batch.put(Family.SCHEDULES, key, encode_schedule(record))


def _put_unreadable(rig: Rig, batch: Batch) -> None:
    batch.put(Family.SCHEDULES, schedule_key(rig.queue.queue_id, "a"), b"\xff" * 8)


CASES = [
    Case("I21", "is paused, but has a next time", _put(is_paused=True)),
    Case("I21", "has its next time at 5, and ran at 6", _put(next_at_ms=5, last_at_ms=6)),
    Case("I21", "'a' has the name of another", _put_twice, ("a", "b")),
    Case("I7", "cannot be read", _put_unreadable),
    Case("I7", "cannot be read", _put(when="0 3 * *")),
    Case("I7", "cannot be read", _put(zone="Mars")),
]


@pytest.mark.parametrize("case", CASES, ids=[case.text for case in CASES])
def test_damage_is_told_and_repaired(rig: Rig, case: Case) -> None:
    assert check_store(rig.store) == []
    batch = rig.store.batch()
    case.damage(rig, batch)
    rig.store.write(batch)

    assert [(each.rule, case.text in each.text) for each in check_store(rig.store)] == [
        (case.rule, True)
    ]
    lost = list(rebuild_store(rig.store))

    assert any("the schedule" in each for each in lost)
    assert check_store(rig.store) == []
    rig.reopen()
    assert rig.engine.schedules.names() == list(case.left)
