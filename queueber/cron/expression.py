"""What a schedule says: five fields of cron, a name such as `@daily`, or `@every 90s`.

The syntax is that of cron in Debian. Both days are conditions if one of their fields begins with a
star; otherwise one of them is enough.
"""

import re
from calendar import monthrange
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from typing import NamedTuple, NoReturn

from queueber.errors import InvalidArgument
from queueber.limits import (
    DAY_MS,
    EVERY_MS_MAX,
    EVERY_MS_MIN,
    HOUR_MS,
    MINUTE_MS,
    SCHEDULE_YEARS_MAX,
    SECOND_MS,
    WHEN_CHARS_MAX,
)

_MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
_WEEKDAYS = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"]


class _Field(NamedTuple):
    name: str
    least: int
    most: int
    words: dict[str, int] = {}  # noqa: RUF012  nobody changes it


_MINUTE = _Field("minute", 0, 59)
_HOUR = _Field("hour", 0, 23)
_DAY = _Field("day of the month", 1, 31)
_MONTH = _Field("month", 1, 12, {word: at for at, word in enumerate(_MONTHS, 1)})
_WEEKDAY = _Field("day of the week", 0, 7, {word: at for at, word in enumerate(_WEEKDAYS)})

_NAMED = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_UNITS_MS = {"ms": 1, "s": SECOND_MS, "m": MINUTE_MS, "h": HOUR_MS, "d": DAY_MS}
_DURATION = re.compile(r"([0-9]{1,12})(ms|s|m|h|d)")


@dataclass(frozen=True, slots=True)
class Every:
    """The times whose milliseconds since 1970 are multiples of a duration."""

    ms: int


@dataclass(frozen=True, slots=True)
class Cron:
    """Times of the clock in some time zone."""

    minutes_of_day: tuple[int, ...]
    """In order."""
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    """0 is Sunday."""
    needs_both_days: bool
    is_by_clock: bool
    """Minute or hour begins with a star: what counts is what the clock shows, which differs when
    it is changed for summer time."""

    def has(self, day: date) -> bool:
        if day.month not in self.months:
            return False
        in_month, in_week = day.day in self.days, day.isoweekday() % 7 in self.weekdays
        return (in_month and in_week) if self.needs_both_days else (in_month or in_week)

    def dates(self, first: date) -> Iterator[date]:
        """Those on which it has times, from `first` on, for `SCHEDULE_YEARS_MAX` years."""
        year, month, start = first.year, first.month, first.day
        for _ in range(12 * SCHEDULE_YEARS_MAX + 1):
            if month in self.months:
                for day in range(start, monthrange(year, month)[1] + 1):
                    if self.has(found := date(year, month, day)):
                        yield found
            year, month, start = (year + 1, 1, 1) if month == 12 else (year, month + 1, 1)


When = Cron | Every


def parse_when(text: str, field: str = "when") -> When:
    """Raises `InvalidArgument` if it is no expression, or there is no such date."""
    if len(text) > WHEN_CHARS_MAX:
        raise InvalidArgument(
            f"{field}: it has {len(text)} characters; the limit is {WHEN_CHARS_MAX}"
        )
    words = text.lower().split()
    if words[:1] == ["@every"]:
        return _every(text, words[1:], field)
    if len(words) == 1 and words[0] in _NAMED:
        words = _NAMED[words[0]].split()
    if len(words) != 5:
        raise InvalidArgument(
            f"{field}: {text!r} is no schedule; give minute, hour, day of the month, month and day "
            f"of the week, or one of {', '.join(_NAMED)}, or @every and a duration such as 90s"
        )
    minute, hour, day, month, weekday = words
    minutes, hours = _values(minute, _MINUTE, field), _values(hour, _HOUR, field)
    made = Cron(
        tuple(sorted(60 * h + m for h in hours for m in minutes)),
        _values(day, _DAY, field),
        _values(month, _MONTH, field),
        frozenset(each % 7 for each in _values(weekday, _WEEKDAY, field)),
        needs_both_days=day.startswith("*") or weekday.startswith("*"),
        is_by_clock=minute.startswith("*") or hour.startswith("*"),
    )
    # The calendar repeats after 400 years; these 40 have every kind of year but a common 2100.
    if next(made.dates(date(2000, 1, 1)), None) is None:
        raise InvalidArgument(f"{field}: {text!r} names a date that does not exist")
    return made


def _every(text: str, words: list[str], field: str) -> Every:
    found = _DURATION.fullmatch(words[0]) if len(words) == 1 else None
    if found is None:
        raise InvalidArgument(f"{field}: {text!r} has no duration; give one, such as @every 90s")
    ms = int(found[1]) * _UNITS_MS[found[2]]
    if not EVERY_MS_MIN <= ms <= EVERY_MS_MAX:
        raise InvalidArgument(
            f"{field}: {text!r}: {ms} ms is out of range; it must be {EVERY_MS_MIN} to "
            f"{EVERY_MS_MAX} ms"
        )
    return Every(ms)


def _values(text: str, field: _Field, argument: str) -> frozenset[int]:
    found: set[int] = set()
    for part in text.split(","):
        found |= _part(part, field, argument)
    return frozenset(found)


def _part(text: str, field: _Field, argument: str) -> set[int]:
    span, slash, step_text = text.partition("/")
    first_text, dash, last_text = span.partition("-")
    step = _number(step_text) if slash else 1
    if not step:
        _refuse(text, field, argument)
    if span == "*":
        # 7 is Sunday once more: every second day begins with 0, and does not end with it.
        return set(range(field.least, (6 if field is _WEEKDAY else field.most) + 1, step))
    first = _value(first_text, field)
    last = _value(last_text, field) if dash else field.most if slash else first
    if first is None or last is None or first > last:
        _refuse(text, field, argument)
    return set(range(first, last + 1, step))


def _value(text: str, field: _Field) -> int | None:
    found = field.words.get(text, _number(text))
    return found if found is not None and field.least <= found <= field.most else None


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 4 else None


def _refuse(text: str, field: _Field, argument: str) -> NoReturn:
    words = f", or {next(iter(field.words))} and so on" if field.words else ""
    raise InvalidArgument(
        f"{argument}: {text!r} is no {field.name}; give *, a number from {field.least} to "
        f"{field.most}{words}, a range such as 1-5, a step such as */2, or several with commas"
    )
