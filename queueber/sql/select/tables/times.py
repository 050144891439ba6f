"""Times of the client as those of rows."""

from datetime import UTC, datetime

from queueber.limits import SECOND_MS

_YEAR_9999_MS = 253_402_300_799_000


def at(at_ms: int) -> datetime | None:
    """None for 0, which stands for none, and for a time that never comes."""
    if not 0 < at_ms <= _YEAR_9999_MS:
        return None
    return datetime.fromtimestamp(at_ms // SECOND_MS, UTC).replace(
        microsecond=at_ms % SECOND_MS * 1000
    )


def paused(until_ms: int) -> tuple[bool, datetime | None]:
    """Whether it is paused, and until when; None: until somebody resumes it."""
    return until_ms > 0, at(until_ms)
