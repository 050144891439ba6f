"""Codecs of schedules."""

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

from queueber.errors import InvalidArgument
from queueber.model import NO_OPTIONS, Missed, Schedule, ScheduleInfo
from queueber.wire.item_options import read_options, write_options
from queueber.wire.lists import Codec, read_attribute_list, write_attribute_list

_SCHEDULE = tuple(each.name for each in fields(Schedule))
_MISSED = tuple(Missed)
"""In the order of their numbers in the schema."""
_INFO = Codec(ScheduleInfo, without=_SCHEDULE)


def write_schedule(target: Any, schedule: Schedule) -> None:
    target.name = schedule.name
    target.when = schedule.when
    target.queue = schedule.queue
    target.contents = schedule.contents
    target.zone = schedule.zone
    target.missed = schedule.missed.value
    target.priority = schedule.priority
    write_attribute_list(target, "attributes", schedule.attributes)
    if schedule.options != NO_OPTIONS:
        write_options(target.init("options"), schedule.options)


def read_schedule(source: Any) -> Schedule:
    return Schedule(**_fields(source))


def write_schedule_info(target: Any, info: ScheduleInfo) -> None:
    write_schedule(target.init("schedule"), info)
    _INFO.write(target, info)


def read_schedule_info(source: Any) -> ScheduleInfo:
    return _INFO.read(source, **_fields(source.schedule))


def write_schedules(results: Any, page: tuple[Sequence[ScheduleInfo], bool]) -> None:
    schedules, results.more = page
    listed = results.init("schedules", len(schedules))
    for at, info in enumerate(schedules):
        write_schedule_info(listed[at], info)


def _fields(source: Any) -> dict[str, Any]:
    return {
        "name": source.name,
        "when": source.when,
        "queue": source.queue,
        "contents": bytes(source.contents),
        "zone": source.zone or "UTC",
        "missed": _read_missed(source.missed),
        "priority": source.priority,
        "attributes": read_attribute_list(source.attributes),
        "options": read_options(source.options),
    }


def _read_missed(word: Any) -> Missed:
    """Read the number, because pycapnp has no name for a value that is not in the schema."""
    if word.raw >= len(_MISSED):
        raise InvalidArgument(f"missed: {word.raw} is none of {', '.join(_MISSED)}")
    return _MISSED[int(word.raw)]
