"""Which runs are made and which are left out: the rule of missed runs."""

import pytest

from queueber.engine.schedules.due_runs import due_runs, next_run_ms
from queueber.errors import InvalidArgument
from queueber.limits import (
    DAY_MS,
    HOUR_MS,
    MINUTE_MS,
    MISSED_MADE_UP_MS,
    SCHEDULE_RUNS_TOGETHER,
    SECOND_MS,
)
from queueber.model import Missed, Schedule

NOON = 1_800_014_400_000  # 2027-01-15 12:00 UTC


def _schedule(when: str, missed: Missed) -> Schedule:
    return Schedule("s", when, "q", missed=missed)


@pytest.mark.parametrize("missed", Missed)
@pytest.mark.parametrize("late_ms", [0, 1, MINUTE_MS - 1])
def test_a_run_that_is_not_late_is_made_once(missed: Missed, late_ms: int) -> None:
    found = due_runs(_schedule("@hourly", missed), NOON, NOON + late_ms)

    assert found == ([NOON], NOON + HOUR_MS)


@pytest.mark.parametrize(
    ("missed", "made"),
    [
        (Missed.ONCE, [NOON]),
        (Missed.SKIP, []),
        (Missed.ALL, [NOON, NOON + HOUR_MS, NOON + 2 * HOUR_MS]),
    ],
)
def test_runs_of_a_time_when_nobody_looked(missed: Missed, made: list[int]) -> None:
    found = due_runs(_schedule("@hourly", missed), NOON, NOON + 2 * HOUR_MS + MINUTE_MS)

    assert found == (made, NOON + 3 * HOUR_MS)


def test_skip_makes_the_run_of_this_minute_after_missed_ones() -> None:
    now_ms = NOON + 3 * HOUR_MS + MINUTE_MS - 1

    found = due_runs(_schedule("@hourly", Missed.SKIP), NOON, now_ms)

    assert found == ([NOON + 3 * HOUR_MS], NOON + 4 * HOUR_MS)


def test_all_is_made_up_for_a_part_at_a_time_and_nothing_twice() -> None:
    schedule, now_ms = _schedule("* * * * *", Missed.ALL), NOON + 250 * MINUTE_MS
    made, next_at_ms, steps = [], NOON, []
    while next_at_ms <= now_ms:
        runs, next_at_ms = due_runs(schedule, next_at_ms, now_ms)
        steps.append(len(runs))
        made += runs

    assert made == [NOON + each * MINUTE_MS for each in range(251)]
    assert steps == [SCHEDULE_RUNS_TOGETHER, SCHEDULE_RUNS_TOGETHER, 51]


def test_all_goes_back_seven_days() -> None:
    now_ms = NOON + 30 * DAY_MS

    found = due_runs(_schedule("@daily", Missed.ALL), NOON - NOON % DAY_MS, now_ms)

    first_ms = now_ms - MISSED_MADE_UP_MS - now_ms % DAY_MS + DAY_MS
    assert found.at_ms == [first_ms + each * DAY_MS for each in range(7)]


def test_seconds_can_be_missed_too() -> None:
    schedule = _schedule("@every 10s", Missed.SKIP)

    found = due_runs(schedule, NOON, NOON + 5 * MINUTE_MS)

    assert found.at_ms == [NOON + 4 * MINUTE_MS + each * SECOND_MS for each in range(10, 61, 10)]
    assert found.next_at_ms == NOON + 5 * MINUTE_MS + 10 * SECOND_MS


def test_a_zone_that_is_unknown_here_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="no time zone"):
        next_run_ms(Schedule("s", "@daily", "q", zone="Mars"), NOON)
