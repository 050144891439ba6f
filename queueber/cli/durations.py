"""Lengths of time as people write them: `30s`, `10min`, `1h`, `7d`, `8w`."""

import re

import click

from queueber.limits import DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS

_UNITS = {
    "s": SECOND_MS,
    "m": MINUTE_MS,
    "min": MINUTE_MS,
    "h": HOUR_MS,
    "d": DAY_MS,
    "w": 7 * DAY_MS,
}
_WRITTEN = re.compile(r"(\d{1,12}) ?(s|m|min|h|d|w)", re.ASCII)
_LONGEST_MS = 100 * 366 * DAY_MS


def duration_ms(value: object) -> int:
    match = _WRITTEN.fullmatch(str(value).strip())
    ms = int(match[1]) * _UNITS[match[2]] if match else 0
    if not 0 < ms <= _LONGEST_MS:
        raise click.BadParameter(f"{value!r} is not a length of time such as 30s, 10min, 1h or 7d.")
    return ms


def duration(value: object) -> float:
    """In seconds."""
    return duration_ms(value) / SECOND_MS


# What the help of a flag calls it.
duration_ms.__name__ = "duration"
