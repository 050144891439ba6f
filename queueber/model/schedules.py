"""Schedules: when the server adds which item to which queue."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from queueber.limits import PRIORITY_DEFAULT
from queueber.model.items import NO_OPTIONS, ItemOptions

SCHEDULE_ATTRIBUTE = "queueber.schedule"
SCHEDULED_AT_ATTRIBUTE = "queueber.scheduled_at_ms"


def run_attributes(name: str, at_ms: int) -> dict[str, str]:
    """What an item says of the schedule that has added it, and of the time of the run."""
    return {SCHEDULE_ATTRIBUTE: name, SCHEDULED_AT_ATTRIBUTE: str(at_ms)}


class Missed(StrEnum):
    """What becomes of runs whose time has passed by more than a minute: the server was stopped, or
    the queue had no room."""

    ONCE = "once"
    """One item for all of them."""
    SKIP = "skip"
    """None."""
    ALL = "all"
    """An item for each, of the last seven days."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """What its owner says of it."""

    name: str
    when: str
    """Five fields of cron, a name such as `@daily`, or `@every 90s`."""
    queue: str
    contents: bytes = b""
    zone: str = "UTC"
    missed: Missed = Missed.ONCE
    priority: int = PRIORITY_DEFAULT
    attributes: Mapping[str, str] = field(default_factory=dict)
    options: ItemOptions = NO_OPTIONS
    """What each of its items has of its own; it expires so long after it was added."""


class Stored(StrEnum):
    """What storing a schedule did."""

    CREATED = "created"
    CHANGED = "changed"
    UNCHANGED = "unchanged"


@dataclass(frozen=True, slots=True)
class ScheduleInfo(Schedule):
    """A schedule, and how far it is. In lists it has no contents."""

    contents_bytes: int = 0
    created_at_ms: int = 0
    next_at_ms: int = 0
    """0: it is paused, or there is no further time."""
    last_at_ms: int = 0
    """The time of the last run, as the schedule had it; 0: there was none. Runs that somebody asked
    for do not count here."""
    runs: int = 0
    """How many items it has added."""
    is_paused: bool = False
    problem: str = ""
    """Why the queue did not take the item that is due; the server tries again."""
