"""Plain values that the layers pass to each other. No logic.

They are to be read only. Those that every call makes are not frozen: that would take four times as
long to build.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from queueber.limits import DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS


@dataclass(frozen=True, slots=True)
class QueueSettings:
    """What an operator sets for one queue; 0 in a limit means none of the queue's own."""

    items_max: int = 0
    bytes_max: int = 0
    item_bytes_max: int = 0
    lease_ms: int = MINUTE_MS
    """Of a poll that names none."""
    attempts_max: int = 20
    """An item that failed as often is a dead letter."""
    backoff_ms: tuple[int, ...] = ()
    """The delay after the first failure, the second, and so on; the last one repeats. Empty: the
    delay is base * factor ^ (attempt - 1), at most cap."""
    backoff_base_ms: int = SECOND_MS
    backoff_factor: float = 2.0
    backoff_cap_ms: int = HOUR_MS
    backoff_jitter: float = 0.1
    """The share of a delay that chance may take off it."""
    dedup_window_ms: int = 10 * MINUTE_MS
    result_age_ms: int = 7 * DAY_MS
    result_bytes_max: int = 0


@dataclass(frozen=True, slots=True)
class Producer:
    """Who sends a batch of adds. Sequences of an epoch begin at 1 and rise by 1."""

    id: str
    epoch: int
    sequence: int


@dataclass(slots=True)
class NewItems:
    """What one add brings. A column that is empty says nothing of any item."""

    contents: Sequence[bytes]
    delays_ms: Sequence[int] = ()
    priorities: Sequence[int] = ()
    keys: Sequence[str] = ()
    attributes: Sequence[Mapping[str, str]] = ()
    batch: str = ""
    producer: Producer | None = None


@dataclass(slots=True)
class Added:
    """The ids of an add in order. `duplicates` is empty when there was none."""

    ids: Sequence[bytes]
    duplicates: Sequence[bool] = ()
    is_repeat: bool = False


@dataclass(frozen=True, slots=True)
class ItemDetails:
    """What items carry beside their contents. A column that is empty says nothing of any item."""

    attempts: Sequence[int] = ()
    """Empty: the first attempt of each."""
    keys: Sequence[str] = ()
    batches: Sequence[str] = ()
    attributes: Sequence[Mapping[str, str]] = ()


NO_DETAILS = ItemDetails()


@dataclass(slots=True)
class Polled:
    """What one poll got: no items means no lease (`lease_id` is empty)."""

    lease_id: bytes = b""
    ids: Sequence[bytes] = ()
    contents: Sequence[bytes] = ()
    details: ItemDetails = NO_DETAILS


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


@dataclass(frozen=True, slots=True)
class ServerInfo:
    """What a server says of itself."""

    version: str
    durability: str
    item_bytes_max: int
    message_bytes_max: int
    poll_items_max: int
    poll_wait_ms_max: int


class FailOutcome(Enum):
    """What became of an item that was reported as failed."""

    REFUSED = "refused"
    RETRIED = "retried"
    DIED = "died"


class ItemState(Enum):
    """Where an item is."""

    READY = "ready"
    DELAYED = "delayed"
    IN_PROGRESS = "in progress"
    DEAD = "dead"


@dataclass(frozen=True, slots=True)
class Peeked:
    """An item as it stands, without leasing it."""

    id: bytes
    contents: bytes
    added_at_ms: int
    key: str
    attributes: Mapping[str, str]
    batch: str
    priority: int
    attempts: int
    group_max: int
    """It is leased only with so many at once; 0: no limit."""
    at_ms: int
    """Ready: since when. Delayed: until when. In progress: the lease's end. Dead: since when."""
    lease_id: bytes = b""
    reason: str = ""
    last_error: str = ""
    attempt_times_ms: Sequence[int] = ()


@dataclass(frozen=True, slots=True)
class Receipt:
    """What became of a batch: added = done + dead + live."""

    batch: str
    added: int
    done: int
    dead: int
    live: int
    added_digest: bytes
    done_digest: bytes
    dead_digest: bytes
    complete: bool


@dataclass(frozen=True, slots=True)
class Result:
    """One result of a queue's log."""

    offset: int
    id: bytes
    result: bytes
    completed_at_ms: int
    attempt: int
    key: str
    batch: str


@dataclass(frozen=True, slots=True)
class Results:
    """Results in order of offset, and where to read on."""

    results: Sequence[Result]
    next_offset: int
    missed: int
    """Results that were asked for, but have been deleted."""


@dataclass(frozen=True, slots=True)
class LogStats:
    """A log in numbers: the oldest offset kept, the next to come, and who has read how far."""

    first_offset: int
    next_offset: int
    bytes: int
    readers: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Sweep:
    """What a slice of a sweep did to one queue."""

    queue_name: str
    expired: int
    promoted: int
    resumed: bool = False
