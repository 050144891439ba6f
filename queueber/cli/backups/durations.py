"""Lengths of time as people write them: `30s`, `10min`, `1h`, `7d`."""

import re

import click

from queueber.limits import DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS

_UNITS = {"s": SECOND_MS, "min": MINUTE_MS, "h": HOUR_MS, "d": DAY_MS}
_WRITTEN = re.compile(r"(\d{1,6}) ?(s|min|h|d)")


def duration(value: object) -> float:
    """In seconds."""
    match = _WRITTEN.fullmatch(str(value).strip())
    if match is None or not int(match[1]):
        raise click.BadParameter(f"{value!r} is not a length of time such as 30s, 10min, 1h or 7d.")
    return int(match[1]) * _UNITS[match[2]] / SECOND_MS
