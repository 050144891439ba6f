"""The checks of schedules."""

import re

from queueber.cron import parse_when, to_zone
from queueber.errors import InvalidArgument, ResourceExhausted
from queueber.limits import (
    ATTRIBUTES_MAX,
    PRIORITY_MAX,
    SCHEDULE_BYTES_MAX,
    SCHEDULE_NAME_CHARS_MAX,
)
from queueber.model import Schedule
from queueber.service.validate.arguments import check_queue_name
from queueber.service.validate.item_options import check_own_options
from queueber.service.validate.items import attributes_bytes, check_attributes

_NAME = re.compile(rf"[A-Za-z0-9._-]{{1,{SCHEDULE_NAME_CHARS_MAX}}}", re.ASCII)
_OWN_ATTRIBUTES = 2
"""What the server says of each run."""


def check_schedule_name(name: str) -> None:
    if _NAME.fullmatch(name) is None:
        raise InvalidArgument(
            f"name: {name[:200]!r} is not the name of a schedule; use 1 to "
            f"{SCHEDULE_NAME_CHARS_MAX} letters, digits, dots, dashes and underscores"
        )


def check_schedule(schedule: Schedule, item_bytes_max: int) -> None:
    check_schedule_name(schedule.name)
    check_queue_name(schedule.queue, "queue")
    parse_when(schedule.when)
    to_zone(schedule.zone)
    if schedule.priority > PRIORITY_MAX:
        raise InvalidArgument(
            f"priority: {schedule.priority} is too high; it must be 0 to {PRIORITY_MAX}"
        )
    check_attributes([schedule.attributes], 1)
    check_own_options(schedule.options)
    if len(schedule.attributes) > ATTRIBUTES_MAX - _OWN_ATTRIBUTES:
        raise InvalidArgument(
            f"attributes: there are {len(schedule.attributes)}; the limit for a schedule is "
            f"{ATTRIBUTES_MAX - _OWN_ATTRIBUTES}"
        )
    limit = min(item_bytes_max, SCHEDULE_BYTES_MAX)
    size = len(schedule.contents) + attributes_bytes(schedule.attributes)
    if size > limit:
        raise ResourceExhausted(
            f"contents: contents and attributes have {size} bytes; the limit for a schedule is "
            f"{limit}"
        )
