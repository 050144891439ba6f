"""Plain values that the layers pass to each other. No logic."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class QueueSettings:
    """What an operator sets for one queue; 0 means no limit of the queue's own."""

    items_max: int = 0
    bytes_max: int = 0
    item_bytes_max: int = 0


@dataclass(frozen=True, slots=True)
class Polled:
    """What one poll got: no items means no lease (`lease_id` is empty)."""

    lease_id: bytes = b""
    ids: Sequence[bytes] = ()
    contents: Sequence[bytes] = ()


NOTHING_POLLED = Polled()


@dataclass(frozen=True, slots=True)
class Stats:
    """A queue in numbers, as of one moment."""

    name: str
    settings: QueueSettings
    created_at_ms: int
    ready: int
    delayed: int
    in_progress: int
    leases: int
    contents_bytes: int
    oldest_age_ms: int
    waiting_polls: int
    added_total: int
    polled_total: int
    removed_total: int
    expired_total: int
    extended_total: int


@dataclass(frozen=True, slots=True)
class ServerInfo:
    """What a server says of itself."""

    version: str
    durability: str
    item_bytes_max: int
    message_bytes_max: int
    poll_items_max: int
    poll_wait_ms_max: int


@dataclass(frozen=True, slots=True)
class Sweep:
    """What a slice of a sweep did: items of one queue that are ready now and were not before."""

    queue_name: str
    expired: int
    promoted: int
