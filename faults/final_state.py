"""The final state of one queue, from a full read at the end."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import inf


@dataclass(frozen=True, slots=True)
class FoundItem:
    contents: str
    """As `history.printed` returns them."""
    state: str
    """The value of an `ItemState`: ready, delayed, leased or dead."""
    batch: str = ""


@dataclass(frozen=True, slots=True)
class FoundResult:
    offset: int
    id: str
    result: str


@dataclass(frozen=True, slots=True)
class FoundReceipt:
    added: int
    done: int
    dead: int
    live: int
    complete: bool


@dataclass
class FinalState:
    items: dict[str, FoundItem] = field(default_factory=dict)
    results: Sequence[FoundResult] = ()
    first_offset: int = 0
    """The offset of the oldest result. Earlier ones were deleted, as read or as too old."""
    are_results_limited: bool = False
    """Whether the queue deletes results by age or size, even if no reader has read them."""
    receipts: Mapping[str, FoundReceipt] = field(default_factory=dict)
    unknown_batches: Sequence[str] = ()
    """Batches that were asked for and that the queue does not know."""
    totals: Mapping[str, int] = field(default_factory=dict)
    """Totals of the queue's statistics that are known: added, removed, completed, cancelled,
    dead_dropped."""
    dedup_window_ms: float = 0
    """How long the queue remembers keys; 0: not known."""
    dead_age_ms: float = 0
    """How long it keeps dead letters; 0: for ever."""
    read_at_ms: float = inf
    """When this was read, by the clock of the history; infinite: not known."""
