"""Values of snapshots."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SnapshotInfo:
    """A snapshot of a queue: its counts at one moment."""

    id: bytes
    taken_at_ms: int
    expires_at_ms: int
    """When the server ends it, if nobody reads it before."""
    first_offset: int
    """The offset of the oldest result in the snapshot."""
    next_offset: int
    ready: int
    delayed: int
    leased: int
    dead: int


@dataclass(frozen=True, slots=True)
class SnapshotRange:
    """The items between two cursors. An empty cursor is the beginning or the end of the queue."""

    after: bytes = b""
    before: bytes = b""
