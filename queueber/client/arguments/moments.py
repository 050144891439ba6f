"""Moments as users write them: datetimes with a time zone."""

from datetime import UTC, datetime, timedelta

from queueber.errors import InvalidArgument
from queueber.limits import DAY_MS, DELAY_MS_MAX


def to_delay(at: object, field: str = "at") -> timedelta:
    """How long it is until a moment, by the clock of this machine; nothing if it has passed."""
    if not isinstance(at, datetime):
        raise InvalidArgument(f"{field}: {at!r} is not a datetime")
    if at.utcoffset() is None:
        raise InvalidArgument(
            f"{field}: {at.isoformat(' ')} has no time zone; give one, such as "
            "datetime(2026, 12, 24, 18, tzinfo=ZoneInfo('Europe/Berlin'))"
        )
    left = at - datetime.now(UTC)
    if left > timedelta(milliseconds=DELAY_MS_MAX):
        raise InvalidArgument(
            f"{field}: {at.isoformat(' ')} is too far away; the limit is "
            f"{DELAY_MS_MAX // DAY_MS} days from now"
        )
    return max(left, timedelta())
