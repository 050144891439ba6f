"""Runs: each once, with the move to the next time in the same write."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from queueber.db.records.keys import NEVER_MS
from queueber.engine.integrity.check_store import check_store
from queueber.limits import HOUR_MS, MIB, MINUTE_MS, SCHEDULE_RETRY_MS
from queueber.model import (
    FailOutcome,
    ItemOptions,
    ItemState,
    Missed,
    QueueSettings,
    Schedule,
    Stored,
)
from tests.support.operations import configure_queue, peek
from tests.support.rig import QUEUE, START_MS, Rig
from tests.support.schedules import put_schedule, remove_schedule, runs_in

HOUR = START_MS - START_MS % HOUR_MS + HOUR_MS
HOURLY = Schedule("hourly", "@hourly", QUEUE, b"tick", attributes={"a": "b"}, priority=7)


@pytest.fixture
def rig() -> Iterator[Rig]:
    made = Rig()
    put_schedule(made.engine, HOURLY, made.now_ms)
    yield made
    assert check_store(made.store) == []
    made.close()


def test_a_run_is_an_item_with_its_name_and_time(rig: Rig) -> None:
    rig.now_ms = HOUR
    rig.sweep_all()

    polled = rig.poll()
    (contents,) = polled.contents
    (attributes,) = polled.details.attributes
    assert contents == b"tick"
    assert attributes == {
        "a": "b", "queueber.schedule": "hourly", "queueber.scheduled_at_ms": str(HOUR),
    }  # fmt: skip
    assert rig.engine.schedules.describe(rig.store, "hourly").last_at_ms == HOUR


def test_many_sweeps_and_restarts_run_it_once(rig: Rig) -> None:
    for late_ms in range(0, 50, 5):
        rig.now_ms = HOUR + late_ms
        rig.sweep_all()
        rig.reopen()

    assert runs_in(rig.engine, QUEUE) == [("hourly", HOUR)]


def test_the_sweeper_looks_when_the_first_one_is_due(rig: Rig) -> None:
    assert rig.engine.agenda.next_ms() == HOUR
    put_schedule(rig.engine, replace(HOURLY, name="sooner", when="* * * * *"), rig.now_ms)

    assert rig.engine.agenda.next_ms() == START_MS - START_MS % MINUTE_MS + MINUTE_MS
    rig.reopen()
    assert rig.engine.agenda.next_ms() == START_MS - START_MS % MINUTE_MS + MINUTE_MS


def test_a_queue_without_schedules_has_nothing_due(rig: Rig) -> None:
    remove_schedule(rig.engine, "hourly", rig.now_ms)

    rig.reopen()
    assert rig.queue.schedules is None
    assert rig.engine.agenda.next_ms() == NEVER_MS


def test_a_server_that_was_stopped_makes_up_by_the_rule(rig: Rig) -> None:
    for missed in Missed:
        put_schedule(rig.engine, replace(HOURLY, name=missed, missed=missed), rig.now_ms)
    remove_schedule(rig.engine, "hourly", rig.now_ms)
    rig.now_ms = HOUR + 2 * HOUR_MS + 5 * MINUTE_MS
    rig.reopen()
    rig.sweep_all()

    assert sorted(runs_in(rig.engine, QUEUE)) == [
        ("all", HOUR), ("all", HOUR + HOUR_MS), ("all", HOUR + 2 * HOUR_MS), ("once", HOUR),
    ]  # fmt: skip


def test_a_full_queue_gets_the_item_once_there_is_room(rig: Rig) -> None:
    configure_queue(rig.engine, QUEUE, QueueSettings(items_max=1), rig.now_ms)
    (other,) = rig.add(b"other")
    rig.now_ms = HOUR
    before = rig.dump()
    rig.sweep_all()

    assert rig.dump() == before
    info = rig.engine.schedules.describe(rig.store, "hourly")
    assert "1 more would pass its limit of 1" in info.problem
    assert info.next_at_ms == HOUR
    assert rig.engine.agenda.next_ms() == HOUR + SCHEDULE_RETRY_MS
    polled = rig.poll()
    rig.remove([other], polled.lease_id)
    rig.now_ms += SCHEDULE_RETRY_MS
    rig.sweep_all()

    assert runs_in(rig.engine, QUEUE) == [("hourly", HOUR)]
    assert rig.engine.schedules.describe(rig.store, "hourly").problem == ""


def test_a_schedule_that_is_refused_holds_up_no_other(rig: Rig) -> None:
    put_schedule(rig.engine, replace(HOURLY, name="small", contents=b""), rig.now_ms)
    configure_queue(rig.engine, QUEUE, QueueSettings(item_bytes_max=3), rig.now_ms)
    rig.now_ms = HOUR
    rig.sweep_all()

    assert runs_in(rig.engine, QUEUE) == [("small", HOUR)]


def test_a_thousand_schedules_run_each_at_its_time(rig: Rig) -> None:
    rig.now_ms = HOUR
    for number in range(1000):
        made = Schedule(f"s{number}", f"{number % 60} * * * *", QUEUE)
        put_schedule(rig.engine, made, rig.now_ms)
    for minute in range(1, 61):
        rig.now_ms = HOUR + minute * MINUTE_MS
        rig.sweep_all()

    found = [each for each in runs_in(rig.engine, QUEUE) if each[0] != "hourly"]
    assert len(found) == len({name for name, _ in found}) == 1000
    assert all(at_ms // MINUTE_MS % 60 == int(name[1:]) % 60 for name, at_ms in found)


def test_items_have_what_the_schedule_says_and_expire_so_long_after_they_were_added(
    rig: Rig,
) -> None:
    own = ItemOptions(1, (5,), 7000, expires_ms=MINUTE_MS)
    put_schedule(rig.engine, replace(HOURLY, options=own), rig.now_ms)
    rig.reopen()
    rig.now_ms = HOUR + 9
    rig.sweep_all()

    ((item,), _) = peek(rig.engine, rig.queue, ItemState.READY, b"", 9, MIB)
    assert (item.attempts_max, item.backoff_ms, item.timeout_ms) == (1, (5,), 7000)
    assert item.expires_at_ms == HOUR + 9 + MINUTE_MS
    assert rig.engine.schedules.describe(rig.store, "hourly").options == own
    polled = rig.poll()
    assert rig.fail(polled.ids, polled.lease_id) == [FailOutcome.DIED]


def test_a_schedule_whose_options_change_has_changed_and_keeps_its_time(rig: Rig) -> None:
    changed = replace(HOURLY, options=ItemOptions(1))

    assert put_schedule(rig.engine, changed, rig.now_ms) == Stored.CHANGED
    assert put_schedule(rig.engine, changed, rig.now_ms) == Stored.UNCHANGED
    assert rig.engine.schedules.describe(rig.store, "hourly").next_at_ms == HOUR
