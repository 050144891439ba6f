"""What a full reading at the end finds in one queue."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class FoundItem:
    contents: str
    """As `history.printed` has them."""
    state: str
    """Ready, delayed, in progress or dead: the value of an `ItemState`."""
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
    """Of the results that are kept; those before it were read and deleted, or were old."""
    are_results_limited: bool = False
    """Whether results go for their age or number, though nobody has read them."""
    receipts: Mapping[str, FoundReceipt] = field(default_factory=dict)
    unknown_batches: Sequence[str] = ()
    """Those that were asked for, and of which the queue knows nothing."""
    totals: Mapping[str, int] = field(default_factory=dict)
    """Of the queue's statistics: added, removed, completed, cancelled; those that are known."""
    dedup_window_ms: float = 0
    """How long keys are remembered; 0: not known."""
