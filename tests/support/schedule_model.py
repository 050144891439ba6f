"""Schedules as plain dictionaries: what the engine must do, without how.

Times are found by looking at every minute, or at every multiple, one after the other.
"""

from dataclasses import dataclass, field
from datetime import UTC, datetime

from queueber.model import ItemOptions, Missed, Schedule

MINUTE_MS = 60_000
WEEK_MS = 7 * 24 * 60 * MINUTE_MS

MINUTES = {
    "*/10 * * * *": set(range(0, 60, 10)),
    "7 * * * *": {7},
    "0,30 * * * *": {0, 30},
}
"""Expressions of the model, and the minutes of every hour that they mean."""
EVERY = {"@every 45s": 45_000, "@every 7m": 420_000}


def times(when: str, after_ms: int, until_ms: int) -> list[int]:
    """All times after one, up to another."""
    step_ms = EVERY.get(when, MINUTE_MS)
    first_ms = (after_ms // step_ms + 1) * step_ms
    return [
        at_ms
        for at_ms in range(first_ms, until_ms + 1, step_ms)
        if when in EVERY or datetime.fromtimestamp(at_ms / 1000, UTC).minute in MINUTES[when]
    ]


def next_time(when: str, after_ms: int) -> int:
    return times(when, after_ms, after_ms + 61 * MINUTE_MS)[0]


@dataclass
class ModelSchedule:
    schedule: Schedule
    next_ms: int
    last_ms: int = 0
    is_paused: bool = False
    runs: int = 0


@dataclass
class ModelSchedules:
    schedules: dict[str, ModelSchedule] = field(default_factory=dict)
    added: dict[str, list[tuple[str, int, ItemOptions]]] = field(default_factory=dict)
    """By queue: the items, each with its schedule and time, and what it has of its own."""

    def put(self, schedule: Schedule, now_ms: int) -> str:
        known = self.schedules.get(schedule.name)
        if known is None:
            self.schedules[schedule.name] = ModelSchedule(
                schedule, next_time(schedule.when, now_ms)
            )
            return "created"
        if known.schedule == schedule:
            return "unchanged"
        if known.schedule.when != schedule.when:
            known.next_ms = next_time(schedule.when, max(now_ms, known.last_ms))
        known.schedule = schedule
        return "changed"

    def pause(self, name: str) -> bool:
        was, self.schedules[name].is_paused = self.schedules[name].is_paused, True
        return not was

    def resume(self, name: str, now_ms: int) -> bool:
        known = self.schedules[name]
        if not known.is_paused:
            return False
        known.is_paused = False
        known.next_ms = next_time(known.schedule.when, max(now_ms, known.last_ms))
        return True

    def run_now(self, name: str, now_ms: int) -> None:
        self._add(self.schedules[name], [now_ms])

    def sweep(self, now_ms: int) -> None:
        for known in self.schedules.values():
            if known.is_paused or known.next_ms > now_ms:
                continue
            when = known.schedule.when
            due = times(when, known.next_ms - 1, now_ms)
            match known.schedule.missed:
                case Missed.ONCE:
                    made = due[:1]
                case Missed.SKIP:
                    made = [at_ms for at_ms in due if now_ms - at_ms < MINUTE_MS]
                case Missed.ALL:
                    made = [at_ms for at_ms in due if now_ms - at_ms <= WEEK_MS]
            self._add(known, made)
            known.last_ms = made[-1] if made else known.last_ms
            known.next_ms = next_time(when, now_ms)

    def _add(self, known: ModelSchedule, made: list[int]) -> None:
        known.runs += len(made)
        items = self.added.setdefault(known.schedule.queue, [])
        items += [(known.schedule.name, at_ms, known.schedule.options) for at_ms in made]

    def queue_deleted(self, queue: str) -> None:
        self.added.pop(queue, None)
        for name, known in list(self.schedules.items()):
            if known.schedule.queue == queue:
                del self.schedules[name]
