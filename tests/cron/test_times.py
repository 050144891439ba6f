"""The next time of a schedule, against a reading of the calendar minute by minute."""

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from queueber.cron import next_time_ms, parse_when, to_zone
from queueber.limits import DAY_MS

CHANGES = [
    ("Europe/Berlin", date(2026, 3, 29)),
    ("Europe/Berlin", date(2026, 10, 25)),
    ("America/New_York", date(2026, 3, 8)),
    ("America/New_York", date(2026, 11, 1)),
    ("Australia/Lord_Howe", date(2026, 4, 5)),  # half an hour
    ("Australia/Lord_Howe", date(2026, 10, 4)),
    ("America/Sao_Paulo", date(2018, 11, 4)),  # at midnight, so that the day begins at 1
    ("America/Sao_Paulo", date(2018, 2, 18)),  # at midnight, so that an hour of yesterday repeats
    ("Pacific/Apia", date(2011, 12, 30)),  # this day was left out
    ("Africa/Casablanca", date(2026, 2, 15)),
    ("UTC", date(2026, 3, 29)),
]


def _times(when: str, zone: str, start: str, count: int) -> list[str]:
    """The times after a local one, with their offsets from UTC."""
    known = to_zone(zone)
    at_ms: int | None = int(datetime.fromisoformat(start).replace(tzinfo=known).timestamp() * 1000)
    found = []
    for _ in range(count):
        assert at_ms is not None
        at_ms = next_time_ms(parse_when(when), known, at_ms)
        assert at_ms is not None
        found.append(datetime.fromtimestamp(at_ms / 1000, known).isoformat(" ", "minutes"))
    return found


@pytest.mark.parametrize(
    ("when", "zone", "start", "expected"),
    [
        # The clock goes from 2:00 to 3:00.
        (
            "30 2 * * *",
            "Europe/Berlin",
            "2026-03-28",
            ["2026-03-28 02:30+01:00", "2026-03-29 03:00+02:00", "2026-03-30 02:30+02:00"],
        ),
        (
            "0,30 2 * * *",
            "Europe/Berlin",
            "2026-03-29",
            ["2026-03-29 03:00+02:00", "2026-03-30 02:00+02:00", "2026-03-30 02:30+02:00"],
        ),
        (
            "30 * * * *",
            "Europe/Berlin",
            "2026-03-29 01:00",
            ["2026-03-29 01:30+01:00", "2026-03-29 03:30+02:00"],
        ),
        # The clock goes from 3:00 back to 2:00.
        (
            "30 2 * * *",
            "Europe/Berlin",
            "2026-10-25",
            ["2026-10-25 02:30+02:00", "2026-10-26 02:30+01:00"],
        ),
        (
            "*/30 * * * *",
            "Europe/Berlin",
            "2026-10-25 01:45",
            [
                "2026-10-25 02:00+02:00",
                "2026-10-25 02:30+02:00",
                "2026-10-25 02:00+01:00",
                "2026-10-25 02:30+01:00",
                "2026-10-25 03:00+01:00",
            ],
        ),
        ("0 0 29 2 *", "UTC", "2026-11-18", ["2028-02-29 00:00+00:00", "2032-02-29 00:00+00:00"]),
        ("0 9 13 * fri", "UTC", "2026-11-18", ["2026-11-20 09:00+00:00", "2026-11-27 09:00+00:00"]),
        ("0 9 */13 * fri", "UTC", "2026-11-18", ["2026-11-27 09:00+00:00"]),
        ("0 0 29 2 */7", "UTC", "2026-11-18", ["2032-02-29 00:00+00:00", "2060-02-29 00:00+00:00"]),
        ("@hourly", "Asia/Kolkata", "2026-11-18 05:59", ["2026-11-18 06:00+05:30"]),
    ],
)
def test_next_times(when: str, zone: str, start: str, expected: list[str]) -> None:
    assert _times(when, zone, start, len(expected)) == expected


def test_every_is_a_multiple_since_1970() -> None:
    when, utc = parse_when("@every 90s"), to_zone("UTC")

    assert next_time_ms(when, utc, 0) == 90_000
    assert next_time_ms(when, utc, 89_999) == 90_000
    assert next_time_ms(when, utc, 90_000) == 180_000


def test_the_rarest_date_is_found() -> None:
    # 2100 is no leap year, so that a weekday of the 29th of February may be 40 years away.
    when, utc = parse_when("0 0 29 2 */7"), to_zone("UTC")
    gaps, at_ms = [], next_time_ms(when, utc, 0)
    for _ in range(15):
        assert at_ms is not None
        before_ms, at_ms = at_ms, next_time_ms(when, utc, at_ms)
        assert at_ms is not None
        gaps.append(round((at_ms - before_ms) / DAY_MS / 365.25))

    assert set(gaps) == {28, 40} or set(gaps) == {12, 28, 40}


# --- against a reading minute by minute -----------------------------------------------------------


def _field(least: int, most: int) -> "st.SearchStrategy[tuple[str, set[int]]]":
    """The text of a field, and what it means."""
    numbers = st.lists(st.integers(least, most), min_size=1, max_size=4)
    return st.one_of(
        st.just(("*", set(range(least, most + 1)))),
        st.integers(1, most).map(
            lambda step: (
                f"*/{step}",
                {n for n in range(least, most + 1) if not (n - least) % step},
            )
        ),
        numbers.map(lambda given: (",".join(map(str, given)), set(given))),
        st.tuples(st.integers(least, most), st.integers(least, most)).map(
            lambda ends: (f"{min(ends)}-{max(ends)}", set(range(min(ends), max(ends) + 1)))
        ),
    )


Field = tuple[str, set[int]]


class Reading:
    """An expression, as its author reads it."""

    def __init__(self, minute: Field, hour: Field, day: Field, weekday: Field) -> None:
        self.text = f"{minute[0]} {hour[0]} {day[0]} * {weekday[0]}"
        self._sets = minute[1], hour[1], day[1], weekday[1]
        self._is_both = "*" in day[0] or "*" in weekday[0]
        self._is_by_clock = minute[0][0] == "*" or hour[0][0] == "*"

    def says(self, wall: datetime) -> bool:
        minutes, hours, days, weekdays = self._sets
        is_day, is_weekday = wall.day in days, (wall.weekday() + 1) % 7 in weekdays
        is_date = is_day and is_weekday if self._is_both else is_day or is_weekday
        return is_date and wall.hour in hours and wall.minute in minutes

    def times(self, zone: ZoneInfo, start: int, end: int) -> list[int]:
        """All from `start` to `end`, in seconds since 1970."""
        seen: set[datetime] = set()
        found = []
        before = datetime.fromtimestamp(start - 86_400, zone).replace(tzinfo=None)
        for at in range(start - 86_400, end, 60):
            wall = datetime.fromtimestamp(at, zone).replace(tzinfo=None, fold=0)
            passed, step = [], before + timedelta(minutes=1)
            while step < wall:
                passed.append(step)
                step += timedelta(minutes=1)
            before = wall
            if self._is_by_clock:
                is_time = self.says(wall)
            else:
                is_time = (self.says(wall) and wall not in seen) or any(map(self.says, passed))
            seen.add(wall)
            if is_time and at >= start:
                found.append(at)
        return found


@settings(deadline=None)  # the reading takes its time
@given(
    change=st.sampled_from(CHANGES),
    minute=_field(0, 59),
    hour=st.one_of(_field(0, 23), st.integers(0, 3).map(lambda hour: (str(hour), {hour}))),
    day=_field(1, 31),
    weekday=_field(0, 6),
)
@example(CHANGES[0], ("30", {30}), ("2", {2}), ("*", set(range(1, 32))), ("*", set(range(7))))
@example(CHANGES[5], ("*/20", {0, 20, 40}), ("2", {2}), ("4", {4}), ("*", set(range(7))))
@example(CHANGES[8], ("0", {0}), ("12", {12}), ("30", {30}), ("*", set(range(7))))
def test_times_are_those_that_a_reading_minute_by_minute_finds(
    change: tuple[str, date], minute: Field, hour: Field, day: Field, weekday: Field
) -> None:
    name, on = change
    zone, reading = to_zone(name), Reading(minute, hour, day, weekday)
    start = int(datetime(on.year, on.month, on.day, tzinfo=UTC).timestamp()) - 86_400
    end = start + 3 * 86_400
    when = parse_when(reading.text)

    found, at_ms = [], next_time_ms(when, zone, start * 1000 - 1)
    while at_ms is not None and at_ms < end * 1000:
        found.append(at_ms // 1000)
        at_ms = next_time_ms(when, zone, at_ms)

    assert found == reading.times(zone, start, end)
