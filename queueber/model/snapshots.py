"""A queue as it was at one moment."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SnapshotInfo:
    """A queue as it was at one moment, in numbers."""

    id: bytes
    taken_at_ms: int
    expires_at_ms: int
    """Unless somebody reads before."""
    first_offset: int
    """Of the results that there were."""
    next_offset: int
    ready: int
    delayed: int
    leased: int
    dead: int


@dataclass(frozen=True, slots=True)
class SnapshotRange:
    """What a scan finds after one cursor and up to another; empty: from the first, to the last."""

    after: bytes = b""
    before: bytes = b""
