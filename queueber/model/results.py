"""Results, the receipts of batches, and which columns of them are wanted."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum


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


@dataclass(frozen=True, slots=True)
class ResultColumns:
    """A page of results as parallel lists: position n of every list belongs to one result.

    Columns that were not asked for hold empty values.
    """

    offsets: Sequence[int]
    ids: Sequence[bytes]
    results: Sequence[bytes]
    completed_at_ms: Sequence[int]
    attempts: Sequence[int]
    keys: Sequence[str]
    batches: Sequence[str]
    attributes: Sequence[Mapping[str, str]]
    next_offset: int
    missed: int


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
class LogStats:
    """A log in numbers: the oldest offset kept, the next to come, and who has read how far."""

    first_offset: int
    next_offset: int
    bytes: int
    readers: Mapping[str, int]
