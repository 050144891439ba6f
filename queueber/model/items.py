"""Items on their way: what is added, what a poll gets, how an item stands."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from queueber.model.loads import LoadRef


@dataclass(frozen=True, slots=True)
class Producer:
    """Who sends a batch of adds. Sequences of an epoch begin at 1 and rise by 1."""

    id: str
    epoch: int
    sequence: int


@dataclass(frozen=True, slots=True)
class Origin:
    """Where the items of an add come from; their ids tell it."""

    load: LoadRef
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


class FailOutcome(Enum):
    """What became of an item that was reported as failed."""

    REFUSED = "refused"
    RETRIED = "retried"
    DIED = "died"


class ItemState(Enum):
    """Where an item is."""

    READY = "ready"
    DELAYED = "delayed"
    LEASED = "leased"
    DEAD = "dead"


@dataclass(slots=True)
class ItemInfo:
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
class ItemColumns:
    """A page of items as parallel lists: position n of every list belongs to one item.

    Columns that were not asked for hold empty values. `queueber.ids.made_at_ms` of an id tells when
    the item was added.
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
