"""Schedules in line: they are stored, and run when a test says so. No time passes here."""

import threading
from dataclasses import fields, replace
from typing import Any

from queueber.client.arguments.item_options import to_own_options
from queueber.client.arguments.schedules import to_schedule
from queueber.errors import NotFound
from queueber.limits import PRIORITY_DEFAULT
from queueber.model import NewItems, Schedule, ScheduleInfo, Stored, run_attributes
from queueber.testing.handler_calls import clock

_OWN = ("attempts", "backoff", "timeout", "expires")
_DEFAULTS = {
    "queue": "default",
    "contents": b"",
    "zone": "UTC",
    "missed": "once",
    "priority": PRIORITY_DEFAULT,
    "attributes": None,
}


class InlineSchedules:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._by_name: dict[str, ScheduleInfo] = {}

    def put(self, name: str, when: str, given: dict[str, Any]) -> Stored:
        own = {each: given.pop(each) for each in _OWN if each in given}
        schedule = to_schedule(
            name=name, when=when, **{**_DEFAULTS, **given}, options=to_own_options(**own)
        )
        values = {each.name: getattr(schedule, each.name) for each in fields(Schedule)}
        with self._lock:
            known = self._by_name.get(name)
            if known is not None and all(getattr(known, key) == values[key] for key in values):
                return Stored.UNCHANGED
            self._by_name[name] = replace(known or _new(schedule), **values)
            return Stored.CREATED if known is None else Stored.CHANGED

    def all(self) -> list[ScheduleInfo]:
        with self._lock:
            return [self._by_name[name] for name in sorted(self._by_name)]

    def describe(self, name: str) -> ScheduleInfo:
        with self._lock:
            found = self._by_name.get(name)
        if found is None:
            raise NotFound(f"there is no schedule {name!r}; create it, or check the name")
        return found

    def remove(self, name: str) -> bool:
        with self._lock:
            return self._by_name.pop(name, None) is not None

    def run(self, name: str) -> tuple[str, NewItems]:
        """What it adds to which queue."""
        known = self.describe(name)
        with self._lock:
            self._by_name[name] = replace(known, runs=known.runs + 1)
        return known.queue, NewItems(
            [known.contents],
            priorities=[known.priority],
            attributes=[{**known.attributes, **run_attributes(name, clock.now_ms())}],
            options=[known.options],
        )


def _new(schedule: Schedule) -> ScheduleInfo:
    made = ScheduleInfo(schedule.name, schedule.when, schedule.queue)
    return replace(made, contents_bytes=len(schedule.contents), created_at_ms=clock.now_ms())
