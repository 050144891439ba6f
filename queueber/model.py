"""Plain values that the layers pass to each other. No logic.

They are to be read only. Those that every call makes are not frozen: that would take four times as
long to build.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

from queueber.limits import DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS, answer_bytes_max


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


@dataclass(frozen=True, slots=True)
class Origin:
    """Where the items of an add come from; their ids tell it."""

    load: "LoadRef"
    """The load that the call belongs to."""
    partition: int
    row: int
    """Of the first item; the others follow it."""


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
    origin: Origin | None = None


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

    @property
    def answer_bytes_max(self) -> int:
        return answer_bytes_max(
            item_bytes_max=self.item_bytes_max, message_bytes_max=self.message_bytes_max
        )


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


@dataclass(slots=True)
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


@dataclass(slots=True)
class Result:
    """One result of a queue's log."""

    offset: int
    id: bytes
    result: bytes
    completed_at_ms: int
    attempt: int
    key: str
    batch: str
    attributes: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Results:
    """Results in order of offset, and where to read on."""

    results: Sequence[Result]
    next_offset: int
    """May lie behind results that were passed over, and so say more than that none was found."""
    missed: int
    """Results that were asked for, but have been deleted."""


class Column(Enum):
    """What need not be sent of results and of items as they stand."""

    RESULTS = "results"
    KEYS = "keys"
    BATCHES = "batches"
    ATTRIBUTES = "attributes"
    CONTENTS = "contents"

    # An enum hashes its name in Python, which is felt when every item asks what is left out.
    __hash__ = object.__hash__


ALL_COLUMNS: frozenset[Column] = frozenset()
"""What is left out when nothing is."""


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
    in_progress: int
    dead: int


@dataclass(frozen=True, slots=True)
class LogStats:
    """A log in numbers: the oldest offset kept, the next to come, and who has read how far."""

    first_offset: int
    next_offset: int
    bytes: int
    readers: Mapping[str, int]


class LoadState(Enum):
    """How far a load is."""

    STAGING = "staging"
    COMMITTING = "committing"
    COMMITTED = "committed"


@dataclass(frozen=True, slots=True)
class LoadRef:
    """Loads of the same name follow each other in epochs."""

    name: str
    epoch: int = 0


@dataclass(frozen=True, slots=True)
class Load:
    """Many items that become visible at once, and what is needed to build their files."""

    ref: LoadRef
    state: LoadState
    batch: str
    started_at_ms: int
    """The time of its items."""
    expires_at_ms: int
    """Unless somebody calls before."""
    rows: int
    """Staged so far; once committed: items that were added."""
    duplicates: int
    """Once committed: rows that a key kept out."""
    queue_number: int
    batch_number: int
    id_head: bytes
    dedup_window_ms: int
    item_bytes_max: int
    file_bytes_max: int
    directory: str
    """Where the server keeps the load's files."""
    token: bytes
    """What the file `token` there says."""


@dataclass(frozen=True, slots=True)
class StagedFile:
    """A sorted file of entries of one family, and what it is said to hold."""

    name: str
    family: str
    """The name of a family, or "claims": which item has which key."""
    size: int
    entries: int
    crc32: int
    first_key: bytes
    last_key: bytes


@dataclass(frozen=True, slots=True)
class PartRef:
    """One attempt at a partition of a load."""

    partition: int
    attempt: str


@dataclass(frozen=True, slots=True)
class Part:
    """What one attempt at a partition has staged."""

    ref: PartRef
    files: Sequence[StagedFile]
    rows: int
    contents_bytes: int
    digest: bytes
    """As in a receipt, of its ids; zeros when the load has no batch."""
    levels: Sequence[int]
    """How many are ready: of priority 9, of 8, and so on."""
    delayed: int
    delayed_first_ms: int
    """The earliest time of those; 0 when there is none."""
    keys: int
    """Items with a key, if the load has a window."""


@dataclass(slots=True)
class Rows:
    """Rows of a partition, in order. A column that is empty says nothing of any row."""

    contents: Sequence[bytes]
    visible_at_ms: Sequence[int] = ()
    """Ready at once, if that is not later than the start of the load."""
    priorities: Sequence[int] = ()
    keys: Sequence[str] = ()
    """"" is no key."""
    attributes: Sequence[Mapping[str, str]] = ()


@dataclass(frozen=True, slots=True)
class Sweep:
    """What a slice of a sweep did to one queue."""

    queue_name: str
    expired: int
    promoted: int
    resumed: bool = False
