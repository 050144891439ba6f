"""Values of queues, their snapshots and servers: settings, statistics, limits."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from queueber.limits import (
    BATCH_KEEP_MS,
    BATCHES_MAX,
    DAY_MS,
    HOUR_MS,
    MINUTE_MS,
    SECOND_MS,
    answer_bytes_max,
)


@dataclass(frozen=True, slots=True)
class QueueSettings:
    """The settings of one queue. A limit of 0 means no limit of the queue's own."""

    items_max: int = 0
    bytes_max: int = 0
    item_bytes_max: int = 0
    lease_ms: int = MINUTE_MS
    """The length of leases, if a poll does not say."""
    attempts_max: int = 20
    """Failures that make an item a dead letter; 0: no limit."""
    backoff_ms: tuple[int, ...] = ()
    """The delays after the first failure, the second, and so on; the last one repeats. If empty,
    the delay is base * factor ^ (attempt - 1), at most cap."""
    backoff_base_ms: int = SECOND_MS
    backoff_factor: float = 2.0
    backoff_cap_ms: int = HOUR_MS
    backoff_jitter: float = 0.1
    """Each delay is shortened by a random part of up to this fraction."""
    dedup_window_ms: int = 10 * MINUTE_MS
    result_age_ms: int = 7 * DAY_MS
    result_bytes_max: int = 0
    isolation: bool = True
    """Whether items of an expired lease are leased in smaller groups, to find a poison item."""
    concurrency_max: int = 0
    """Items that are leased at once; 0: no limit."""
    rate_items: int = 0
    """Items that may be leased in `rate_ms`; 0: no limit."""
    rate_ms: int = 0
    """0: a second."""
    batches_max: int = BATCHES_MAX
    """Batches that the queue remembers."""
    batch_keep_ms: int = BATCH_KEEP_MS
    """How long it remembers a batch after its end."""
    cap_by: str = ""
    """The attribute by which items are capped apart; empty: none."""
    cap_by_concurrency_max: int = 0
    """Items with one value of that attribute that are leased at once; 0: no limit."""
    cap_by_rate_items: int = 0
    """Items with one value of it that may be leased in `cap_by_rate_ms`; 0: no limit."""
    cap_by_rate_ms: int = 0
    """0: a second."""
    dead_age_ms: int = 0
    """Dead letters that died longer ago are deleted; 0: no limit."""


@dataclass(frozen=True, slots=True)
class Stats:
    """The settings and counts of a queue at one moment."""

    name: str
    settings: QueueSettings
    created_at_ms: int
    ready: int
    delayed: int
    leased: int
    leases: int
    contents_bytes: int
    oldest_claimable_age_ms: int
    waiting_polls: int
    added_total: int
    polled_total: int
    removed_total: int
    expired_total: int
    extended_total: int
    dead: int
    completed_total: int
    failed_total: int
    released_total: int
    died_total: int
    redriven_total: int
    cancelled_total: int
    duplicates_total: int
    paused_until_ms: int
    """0: not paused; NEVER_MS: until resumed."""
    results: int
    result_bytes: int
    batches: int
    parked: int = 0
    """Those of `ready` that wait for a lease of their cap key to end."""
    callbacks: int = 0
    """Callbacks of batches whose item was not added yet."""
    waiting: int = 0
    """Those of `delayed` that wait for other items or a batch."""
    dead_dropped_total: int = 0
    """Dead letters that were deleted because of `dead_age_ms`."""
    unclaimed_total: int = 0
    """Those of `died_total` that nobody leased in time: they expired."""


@dataclass(frozen=True, slots=True)
class LeaseInfo:
    """A lease at one moment."""

    lease_id: bytes
    holder: str
    """Who polled; empty if the server does not remember."""
    items: int
    """Those that it still holds."""
    expires_at_ms: int
    polled_at_ms: int


class Feature(StrEnum):
    """Fields of requests that servers did not always read, and that older ones ignore."""

    ITEM_OPTIONS = "itemOptions"
    """Options of new items."""
    AFTER = "after"
    """What new items wait for."""
    WHERE = "where"
    """The filter of a peek."""


@dataclass(frozen=True, slots=True)
class ServerInfo:
    """The version, durability and limits of a server."""

    version: str
    durability: str
    item_bytes_max: int
    message_bytes_max: int
    poll_items_max: int
    poll_wait_ms_max: int
    reads_packed: bool = False
    """Whether calls may have packed contents and results, and complete whole leases."""
    started_at_ms: int = 0
    refuses_writes: str = ""
    """Why the server refuses writes at the moment; empty: it does not."""
    is_protected: bool = False
    """Whether callers must authenticate."""
    features: Sequence[str] = ()
    """Each `Feature` that it has; it would ignore what asks for others."""

    @property
    def answer_bytes_max(self) -> int:
        return answer_bytes_max(
            item_bytes_max=self.item_bytes_max, message_bytes_max=self.message_bytes_max
        )


@dataclass(frozen=True, slots=True)
class Sweep:
    """How many items of one queue a slice of a sweep has moved."""

    queue_name: str
    expired: int
    promoted: int
    resumed: bool = False


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
