"""Which runs of a schedule are made now, and when the next one is: the rule of missed runs."""

from typing import NamedTuple

from queueber.cron import next_time_ms, parse_when, to_zone
from queueber.limits import MISSED_AFTER_MS, MISSED_MADE_UP_MS, SCHEDULE_RUNS_TOGETHER
from queueber.model import Missed, Schedule


class DueRuns(NamedTuple):
    at_ms: list[int]
    """Their times, as the expression has them."""
    next_at_ms: int
    """0: there is no further time."""


def next_run_ms(schedule: Schedule, after_ms: int) -> int:
    """The first time after `after_ms`; 0: there is none. Raises `InvalidArgument` if expression or
    zone is wrong."""
    when, zone = parse_when(schedule.when), to_zone(schedule.zone)
    return next_time_ms(when, zone, after_ms) or 0


def due_runs(schedule: Schedule, next_at_ms: int, now_ms: int) -> DueRuns:
    """`next_at_ms` is due. No time is in two answers, whatever the clock does: the next one is
    later than all that are made or left out."""
    match schedule.missed:
        case Missed.ONCE:
            return DueRuns([next_at_ms], next_run_ms(schedule, now_ms))
        case Missed.SKIP:
            first_ms = _not_before(schedule, next_at_ms, now_ms - MISSED_AFTER_MS + 1)
        case Missed.ALL:
            first_ms = _not_before(schedule, next_at_ms, now_ms - MISSED_MADE_UP_MS)
    found: list[int] = []
    while first_ms and first_ms <= now_ms and len(found) < SCHEDULE_RUNS_TOGETHER:
        found.append(first_ms)
        first_ms = next_run_ms(schedule, first_ms)
    return DueRuns(found, first_ms)


def _not_before(schedule: Schedule, next_at_ms: int, least_ms: int) -> int:
    """The first run at or after a time."""
    return next_at_ms if next_at_ms >= least_ms else next_run_ms(schedule, least_ms - 1)
