"""The next time of a schedule.

Clocks are changed for summer time, so some times of the clock come twice, and some never. A time
that is given (`30 2 * * *`) counts once: the first time that it comes, or, where the clock passes
over it, the moment of the change. An expression whose minute or hour begins with a star goes by
what the clock shows, so that `*/15 * * * *` stays a quarter of an hour. That is what cron in Debian
does.
"""

from bisect import bisect_left, bisect_right
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from queueber.cron.expression import Cron, Every, When
from queueber.limits import SECOND_MS

_MINUTE = 60
_DAY = timedelta(days=1)
_MINUTES_OF_DAY = 24 * 60


def next_time_ms(when: When, zone: ZoneInfo, after_ms: int) -> int | None:
    """The first time after `after_ms`; None if there is none in `SCHEDULE_YEARS_MAX` years."""
    if isinstance(when, Every):
        return (after_ms // when.ms + 1) * when.ms
    after = after_ms // SECOND_MS
    found = _next_shown(when, zone, after) if when.is_by_clock else _next_given(when, zone, after)
    return None if found is None else found * SECOND_MS


def _next_given(cron: Cron, zone: ZoneInfo, after: int) -> int | None:
    """Later times of the clock are never earlier in fact, so that the first can be searched for."""
    # What the clock passes over at midnight belongs to the day before.
    for day in cron.dates(_shown(zone, after).date() - _DAY):
        minutes = cron.minutes_of_day
        at = bisect_right(minutes, after, key=lambda minute: _moment(zone, day, minute))
        if at < len(minutes):
            return _moment(zone, day, minutes[at])
    return None


def _moment(zone: ZoneInfo, day: date, minute: int) -> int:
    """When the clock first shows a time; if it never does, when it is put forward past it."""
    wall = datetime.combine(day, time(minute // 60, minute % 60), zone)
    moment = int(wall.timestamp())
    if _shown(zone, moment).replace(fold=0) == wall:
        return moment
    return _change(zone, int(wall.replace(fold=1).timestamp()), moment)


def _next_shown(cron: Cron, zone: ZoneInfo, after: int) -> int | None:
    """From one minute to the next that matters, as if the clock were not changed; if it was changed
    on the way, only up to that moment."""
    minutes = cron.minutes_of_day
    at = after // _MINUTE * _MINUTE + _MINUTE
    while True:
        shown = _shown(zone, at)
        day, minute = shown.date(), 60 * shown.hour + shown.minute
        place = bisect_left(minutes, minute) if cron.has(day) else len(minutes)
        is_found = place < len(minutes)
        if is_found:
            goal = minutes[place]
        else:
            upcoming = next(cron.dates(day + _DAY), None)
            if upcoming is None:
                return None
            if upcoming - day > 3 * _DAY:
                # No clock on earth shows the date so early.
                at = int(datetime.combine(upcoming - 2 * _DAY, time(), UTC).timestamp())
                continue
            goal = _MINUTES_OF_DAY
        reached = at + (goal - minute) * _MINUTE
        if _shown(zone, reached).utcoffset() != shown.utcoffset():
            at = _change(zone, at, reached)
        elif is_found:
            return reached
        else:
            at = reached


def _change(zone: ZoneInfo, low: int, high: int) -> int:
    """The second after `low`, up to `high`, at which the clock is changed."""
    before = _shown(zone, low).utcoffset()
    while high - low > 1:
        middle = (low + high) // 2
        if _shown(zone, middle).utcoffset() == before:
            low = middle
        else:
            high = middle
    return high


def _shown(zone: ZoneInfo, moment: int) -> datetime:
    return datetime.fromtimestamp(moment, zone)
