"""Durations as users write them: a number of seconds or a `timedelta`."""

from datetime import timedelta

from queueber.errors import InvalidArgument

Duration = float | timedelta


def in_seconds(duration: Duration) -> float:
    return duration.total_seconds() if isinstance(duration, timedelta) else duration


def check_seconds(argument: str, seconds: object, low: float, high: float) -> None:
    """Raise `InvalidArgument`, which names the argument, for what is not within the range."""
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        raise InvalidArgument(f"{argument}: {seconds!r} is not a number of seconds or a timedelta")
    if not low <= seconds <= high:
        raise InvalidArgument(f"{argument}: {seconds} is outside {low:g} to {high:g} seconds")
