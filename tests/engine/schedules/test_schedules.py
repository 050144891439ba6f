"""Schedules: create, change, pause, run and remove them."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from queueber.engine.integrity.check_store import check_store
from queueber.engine.schedules import schedules as schedules_module
from queueber.errors import NotFound, ResourceExhausted, Unavailable
from queueber.limits import DAY_MS, HOUR_MS, MINUTE_MS
from queueber.model import Missed, QueueSettings, Schedule, ScheduleInfo, Stored
from tests.support.operations import configure_queue, create_queue, delete_queue
from tests.support.rig import QUEUE, START_MS, Rig, refuse_write
from tests.support.schedules import (
    pause_schedule,
    put_schedule,
    remove_schedule,
    resume_schedule,
    run_schedule,
    runs_in,
)

HOUR = START_MS - START_MS % HOUR_MS + HOUR_MS
"""The first full hour."""
HOURLY = Schedule("hourly", "@hourly", QUEUE, b"tick", attributes={"a": "b"}, priority=7)


@pytest.fixture
def rig() -> Iterator[Rig]:
    made = Rig()
    yield made
    assert check_store(made.store) == []
    made.close()


def _info(rig: Rig, name: str = "hourly") -> ScheduleInfo:
    return rig.engine.schedules.describe(rig.store, name)


def test_a_new_schedule_waits_for_its_first_time(rig: Rig) -> None:
    assert put_schedule(rig.engine, HOURLY, rig.now_ms) is Stored.CREATED

    assert _info(rig) == ScheduleInfo(
        "hourly", "@hourly", QUEUE, b"tick", "UTC", Missed.ONCE, 7, {"a": "b"},
        contents_bytes=4, created_at_ms=START_MS, next_at_ms=HOUR,
    )  # fmt: skip
    rig.now_ms = HOUR - 1
    rig.sweep_all()
    assert runs_in(rig.engine, QUEUE) == []


def test_a_schedule_that_is_stored_again_is_unchanged(rig: Rig) -> None:
    put_schedule(rig.engine, HOURLY, rig.now_ms)
    before = rig.dump()

    assert put_schedule(rig.engine, HOURLY, rig.now_ms + HOUR_MS) is Stored.UNCHANGED
    assert rig.dump() == before


def test_other_contents_leave_the_next_time_as_it_is(rig: Rig) -> None:
    put_schedule(rig.engine, HOURLY, rig.now_ms)

    changed = replace(HOURLY, contents=b"tock")
    assert put_schedule(rig.engine, changed, HOUR + 5) is Stored.CHANGED

    assert _info(rig).next_at_ms == HOUR, "it is due, and not lost"
    assert _info(rig).contents == b"tock"


def test_another_expression_begins_at_its_next_time(rig: Rig) -> None:
    put_schedule(rig.engine, HOURLY, rig.now_ms)

    put_schedule(rig.engine, replace(HOURLY, when="30 * * * *"), HOUR + 5)

    assert _info(rig).next_at_ms == HOUR + 30 * MINUTE_MS


def test_a_schedule_moves_to_another_queue(rig: Rig) -> None:
    create_queue(rig.engine, "other", QueueSettings(), rig.now_ms)
    put_schedule(rig.engine, HOURLY, rig.now_ms)

    put_schedule(rig.engine, replace(HOURLY, queue="other"), rig.now_ms)
    rig.now_ms = HOUR
    rig.sweep_all()

    assert runs_in(rig.engine, QUEUE) == []
    assert runs_in(rig.engine, "other") == [("hourly", HOUR)]
    assert rig.queue.schedules is None


def test_a_paused_schedule_does_not_run_and_makes_up_for_nothing(rig: Rig) -> None:
    put_schedule(rig.engine, replace(HOURLY, missed=Missed.ALL), rig.now_ms)
    assert pause_schedule(rig.engine, "hourly", rig.now_ms)
    assert not pause_schedule(rig.engine, "hourly", rig.now_ms)
    assert (_info(rig).is_paused, _info(rig).next_at_ms) == (True, 0)
    rig.now_ms = HOUR + 10 * HOUR_MS
    rig.reopen()
    rig.sweep_all()

    assert resume_schedule(rig.engine, "hourly", rig.now_ms)
    assert not resume_schedule(rig.engine, "hourly", rig.now_ms)
    rig.sweep_all()
    assert runs_in(rig.engine, QUEUE) == []
    rig.now_ms += HOUR_MS
    rig.sweep_all()
    assert runs_in(rig.engine, QUEUE) == [("hourly", HOUR + 11 * HOUR_MS)]


def test_a_change_of_a_paused_schedule_leaves_it_paused(rig: Rig) -> None:
    put_schedule(rig.engine, HOURLY, rig.now_ms)
    pause_schedule(rig.engine, "hourly", rig.now_ms)

    put_schedule(rig.engine, replace(HOURLY, when="@daily"), rig.now_ms)

    assert (_info(rig).is_paused, _info(rig).next_at_ms) == (True, 0)


def test_a_run_that_somebody_asks_for_leaves_the_next_time(rig: Rig) -> None:
    put_schedule(rig.engine, HOURLY, rig.now_ms)

    item_id = run_schedule(rig.engine, "hourly", rig.now_ms + 3)

    polled = rig.poll()
    assert list(polled.ids) == [item_id]
    assert (_info(rig).next_at_ms, _info(rig).last_at_ms, _info(rig).runs) == (HOUR, 0, 1)


def test_a_removed_schedule_leaves_its_items(rig: Rig) -> None:
    put_schedule(rig.engine, HOURLY, rig.now_ms)
    rig.now_ms = HOUR
    rig.sweep_all()

    assert remove_schedule(rig.engine, "hourly", rig.now_ms)
    assert not remove_schedule(rig.engine, "hourly", rig.now_ms)
    rig.now_ms += DAY_MS
    rig.sweep_all()

    assert runs_in(rig.engine, QUEUE) == [("hourly", HOUR)]
    assert rig.engine.schedules.names() == []
    assert rig.queue.schedules is None


def test_schedules_go_with_their_queue(rig: Rig) -> None:
    create_queue(rig.engine, "other", QueueSettings(), rig.now_ms)
    put_schedule(rig.engine, replace(HOURLY, queue="other"), rig.now_ms)

    delete_queue(rig.engine, "other")

    assert rig.engine.schedules.names() == []
    rig.now_ms = HOUR
    rig.sweep_all()
    create_queue(rig.engine, "other", QueueSettings(), rig.now_ms)
    rig.reopen()
    assert rig.engine.schedules.names() == []


@pytest.mark.parametrize("operation", [pause_schedule, resume_schedule, run_schedule])
def test_a_name_that_is_unknown_is_told(rig: Rig, operation: object) -> None:
    with pytest.raises(NotFound, match="there is no schedule 'x'; create it"):
        operation(rig.engine, "x", rig.now_ms)  # type: ignore[operator]


def test_a_queue_that_is_unknown_is_told(rig: Rig) -> None:
    with pytest.raises(NotFound, match="there is no queue 'x'"):
        put_schedule(rig.engine, replace(HOURLY, queue="x"), rig.now_ms)


def test_contents_that_the_queue_does_not_take_are_refused_at_once(rig: Rig) -> None:
    configure_queue(rig.engine, QUEUE, QueueSettings(item_bytes_max=3), rig.now_ms)
    before = rig.dump()

    with pytest.raises(ResourceExhausted, match="has 4 bytes; the limit of queue 'q' is 3"):
        put_schedule(rig.engine, HOURLY, rig.now_ms)
    assert rig.dump() == before


def test_schedules_have_a_limit(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schedules_module, "SCHEDULES_MAX", 2)
    for name in "ab":
        put_schedule(rig.engine, replace(HOURLY, name=name), rig.now_ms)

    with pytest.raises(ResourceExhausted, match="has 2 schedules, the limit"):
        put_schedule(rig.engine, replace(HOURLY, name="c"), rig.now_ms)
    put_schedule(rig.engine, replace(HOURLY, name="b", contents=b""), rig.now_ms)


def test_a_write_that_fails_changes_nothing(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    put_schedule(rig.engine, HOURLY, rig.now_ms)
    rig.now_ms = HOUR
    before = rig.dump()
    with monkeypatch.context() as full_disk:
        full_disk.setattr(rig.store, "write", refuse_write)
        for operation in (run_schedule, remove_schedule, pause_schedule):
            with pytest.raises(Unavailable):
                operation(rig.engine, "hourly", rig.now_ms)
        with pytest.raises(Unavailable):
            put_schedule(rig.engine, replace(HOURLY, name="other"), rig.now_ms)
        with pytest.raises(Unavailable):
            rig.sweep_all()
    assert rig.dump() == before
    assert rig.engine.schedules.names() == ["hourly"]

    rig.now_ms += 1000
    rig.sweep_all()
    assert runs_in(rig.engine, QUEUE) == [("hourly", HOUR)]


def test_a_clock_that_was_set_back_repeats_no_run(rig: Rig) -> None:
    put_schedule(rig.engine, HOURLY, rig.now_ms)
    rig.now_ms = HOUR
    rig.sweep_all()
    rig.now_ms = HOUR - 10
    rig.reopen()

    put_schedule(rig.engine, replace(HOURLY, when="0 * * * *"), rig.now_ms)
    pause_schedule(rig.engine, "hourly", rig.now_ms)
    resume_schedule(rig.engine, "hourly", rig.now_ms)
    rig.now_ms = HOUR + 10
    rig.sweep_all()

    assert runs_in(rig.engine, QUEUE) == [("hourly", HOUR)]
    assert _info(rig).next_at_ms == HOUR + HOUR_MS
