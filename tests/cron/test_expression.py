"""What an expression says, and what is none."""

import pytest

from queueber.cron import Cron, Every, parse_when
from queueber.errors import InvalidArgument
from queueber.limits import WHEN_CHARS_MAX


def _cron(text: str) -> Cron:
    made = parse_when(text)
    assert isinstance(made, Cron)
    return made


def test_fields_have_numbers_names_ranges_steps_and_lists() -> None:
    made = _cron("10-20/5,59 3 1,15 jan-MAR mon,5")

    assert made.minutes_of_day == (190, 195, 200, 239)
    assert made.days == {1, 15}
    assert made.months == {1, 2, 3}
    assert made.weekdays == {1, 5}


@pytest.mark.parametrize(
    ("short", "long"),
    [
        ("0 0 * * 7", "0 0 * * 0"),
        ("0 0 * * 5-7", "0 0 * * 0,5,6"),
        ("5/20 0 1 1 1", "5,25,45 0 1 1 1"),
        ("@yearly", "0 0 1 1 *"),
        ("@monthly", "0 0 1 * *"),
        ("@weekly", "0 0 * * 0"),
        ("@daily", "0 0 * * *"),
        ("@hourly", "0 * * * *"),
        ("  0   0 * * *  ", "0 0 * * *"),
    ],
)
def test_two_ways_to_say_the_same(short: str, long: str) -> None:
    assert parse_when(short) == parse_when(long)


def test_every_second_weekday_has_no_sunday_twice() -> None:
    assert _cron("0 0 * * */2").weekdays == {0, 2, 4, 6}


@pytest.mark.parametrize(("text", "ms"), [("@every 1s", 1000), ("@every 15m", 900_000)])
def test_every_has_a_duration(text: str, ms: int) -> None:
    assert parse_when(text) == Every(ms)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is no schedule; give minute, hour"),
        ("0 3 * *", "is no schedule"),
        ("0 0 3 * * *", "is no schedule"),
        ("@often", "is no schedule"),
        ("60 * * * *", "'60' is no minute; give"),
        ("* 24 * * *", "'24' is no hour; give .* from 0 to 23"),
        ("* * 0 * *", "'0' is no day of the month"),
        ("* * * 13 *", "'13' is no month; .* or jan and so on"),
        ("* * * * 8", "'8' is no day of the week"),
        ("* * * * L", "'l' is no day of the week"),
        ("*/0 * * * *", "is no minute"),
        ("5-1 * * * *", "is no minute"),
        ("1,,2 * * * *", "is no minute"),
        ("-1 * * * *", "is no minute"),
        ("\u0661 * * * *", "is no minute"),
        ("0 0 30 2 *", "names a date that does not exist"),
        ("@every", "has no duration"),
        ("@every 90", "has no duration"),
        ("@every 10ms", "10 ms is out of range; it must be 1000 to"),
        ("@every 400d", "is out of range"),
        ("*" * (WHEN_CHARS_MAX + 1), f"has 257 characters; the limit is {WHEN_CHARS_MAX}"),
    ],
)
def test_what_is_no_expression_is_refused_with_the_reason(text: str, words: str) -> None:
    with pytest.raises(InvalidArgument, match=f"^when: .*{words}"):
        parse_when(text)
