"""Values of items: what an add stores, what a poll returns, what peek and scans show."""

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import pairwise
from typing import NamedTuple, Self

from queueber.ids import ItemId
from queueber.model.id_runs import IdRuns
from queueber.model.loads import LoadRef


@dataclass(frozen=True, slots=True)
class Producer:
    """Who sends an add. The sequence is 1 for the first call of an epoch and rises by 1."""

    id: str
    epoch: int
    sequence: int


@dataclass(frozen=True, slots=True)
class Origin:
    """Where the items of an add come from. Their ids contain it."""

    load: LoadRef
    """The load that the call belongs to."""
    partition: int
    row: int
    """The row of the first item; each further item has the next row."""


@dataclass(frozen=True, slots=True)
class ItemOptions:
    """What an item has of its own, in place of what its queue says."""

    attempts_max: int | None = None
    """Failures that make it a dead letter; 0: no limit. None: as the queue says."""
    backoff_ms: tuple[int, ...] = ()
    """Its delays after the first failure, the second, and so on; the last one repeats. Empty: as
    the queue says."""
    timeout_ms: int = 0
    """How long a worker may take; 0: as the worker says."""
    expires_ms: int = 0
    """So long after the add it dies, if nobody has leased it by then; 0: it does not."""


NO_OPTIONS = ItemOptions()


@dataclass(slots=True)
class NewItems:
    """The items of one add. An empty column means the default for every item."""

    contents: Sequence[bytes]
    delays_ms: Sequence[int] = ()
    priorities: Sequence[int] = ()
    keys: Sequence[str] = ()
    attributes: Sequence[Mapping[str, str]] = ()
    batch: str = ""
    producer: Producer | None = None
    origin: Origin | None = None
    options: Sequence[ItemOptions] = ()
    after: Sequence[bytes] = ()
    """Items of the queue that all of these wait for."""
    after_batch: str = ""
    """A batch of the queue that all of these wait for."""


@dataclass(slots=True)
class Added:
    """The ids of an add in order. `duplicates` is empty if there was none."""

    ids: Sequence[bytes]
    duplicates: Sequence[bool] = ()
    is_repeat: bool = False


@dataclass(frozen=True, slots=True)
class ItemDetails:
    """Fields of items beside their contents. An empty column means the default for every item."""

    attempts: Sequence[int] = ()
    """Empty: the first attempt of every item."""
    keys: Sequence[str] = ()
    batches: Sequence[str] = ()
    attributes: Sequence[Mapping[str, str]] = ()
    deliveries: Sequence[int] = ()
    """How often each was leased, this time included. Empty: as often as `attempts` says."""
    timeouts_ms: Sequence[int] = ()
    """How long a worker may take with each; 0: as the worker says."""


NO_DETAILS = ItemDetails()


class PackedItems(NamedTuple):
    """Items with consecutive ids, as they are stored and travel: their contents are one value."""

    last: bytes
    """The last id."""
    count: int  # type: ignore[assignment]  # nobody counts the fields of the tuple
    ends: bytes
    """Where the contents of each item end, 4 bytes each, little-endian."""
    contents: bytes

    def split(self) -> list[bytes]:
        """The contents of each item."""
        contents, ends = self.contents, struct.unpack(f"<{self.count}I", self.ends)
        return [contents[a:b] for a, b in pairwise((0, *ends))]


@dataclass(slots=True)
class Polled:
    """The answer to one poll. Without items there is no lease, and `lease_id` is empty."""

    lease_id: bytes = b""
    packed: Sequence[PackedItems] = ()
    details: ItemDetails = NO_DETAILS

    @classmethod
    def of(
        cls,
        lease_id: bytes,
        ids: Sequence[bytes],
        contents: Sequence[bytes],
        details: ItemDetails = NO_DETAILS,
    ) -> Self:
        """The answer with these items."""
        packed = [
            PackedItems(item_id, 1, len(each).to_bytes(4, "little"), each)
            for item_id, each in zip(ids, contents, strict=True)
        ]
        return cls(lease_id, packed, details)

    @property
    def count(self) -> int:
        return sum([each.count for each in self.packed])

    @property
    def ids(self) -> Sequence[bytes]:
        return IdRuns([(ItemId(each.last), each.count) for each in self.packed])

    @property
    def contents(self) -> list[bytes]:
        return [contents for each in self.packed for contents in each.split()]


NOTHING_POLLED = Polled()


class FailOutcome(Enum):
    """The outcome for an item that a caller reported as failed."""

    REFUSED = "refused"
    RETRIED = "retried"
    DIED = "died"


class ItemState(Enum):
    """The state of an item that is in a queue."""

    READY = "ready"
    DELAYED = "delayed"
    LEASED = "leased"
    DEAD = "dead"


@dataclass(slots=True)
class ItemInfo:
    """An item as peek and scans show it, without leasing it."""

    id: bytes
    contents: bytes
    added_at_ms: int
    key: str
    attributes: Mapping[str, str]
    batch: str
    priority: int
    attempts: int
    group_max: int
    """Leased only if the holder then holds at most this many items; 0: no limit."""
    at_ms: int
    """Ready: since when. Delayed: until when. Leased: the end of the lease. Dead: since when."""
    lease_id: bytes = b""
    reason: str = ""
    last_error: str = ""
    attempt_times_ms: Sequence[int] = ()
    deliveries: int = 0
    """How often it was leased: for `attempts` that failed, when it was released or lost together
    with others, and now. What counts no attempt is counted up to 255."""
    after: Sequence[bytes] = ()
    """Items that it waits for."""
    after_batch: str = ""
    """The batch that it waits for."""
    attempts_max: int | None = None
    """Failures that make it a dead letter; 0: no limit. None: as the queue says."""
    backoff_ms: Sequence[int] = ()
    """Its own delays after failures; empty: as the queue says."""
    timeout_ms: int = 0
    """How long a worker may take with it; 0: as the worker says."""
    expires_at_ms: int = 0
    """It dies then, unless it is leased before; 0: it does not, or it was leased."""


@dataclass(frozen=True, slots=True)
class ItemColumns:
    """A page of items as parallel lists: position n of every list belongs to one item.

    Columns that the caller left out hold empty values. `queueber.ids.made_at_ms` of an id is the
    time at which the item was added.
    """

    ids: Sequence[bytes]
    contents: Sequence[bytes]
    keys: Sequence[str]
    attributes: Sequence[Mapping[str, str]]
    batches: Sequence[str]
    priorities: Sequence[int]
    attempts: Sequence[int]
    at_ms: Sequence[int]
    lease_ids: Sequence[bytes]
    reasons: Sequence[str]
    last_errors: Sequence[str]
    next: bytes
    """Pass it as `after` to get the next page; empty on the last page."""
    deliveries: Sequence[int] = ()
    after: Sequence[Sequence[bytes]] = ()
    """The items that each waits for; empty: none waits for an item."""
    after_batches: Sequence[str] = ()
    """The batch that each waits for; empty: none waits for a batch."""
