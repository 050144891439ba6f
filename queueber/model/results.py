"""Values of results and receipts, and the columns that a read may leave out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum


@dataclass(frozen=True, slots=True)
class Receipt:
    """The counts and digests of a batch: added = done + dead + live."""

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
class BatchInfo:
    """A batch that a queue remembers; those that began later have greater numbers."""

    number: int
    receipt: Receipt


@dataclass(slots=True)
class Result:
    """One entry of a queue's log of results."""

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
    """Results in order of offset, and where the next read starts."""

    results: Sequence[Result]
    next_offset: int
    """Results of other batches before this offset were skipped; the next read need not see them."""
    missed: int
    """Results in the requested range that have been deleted."""


@dataclass(frozen=True, slots=True)
class ResultColumns:
    """A page of results as parallel lists: position n of every list belongs to one result.

    Columns that the caller left out hold empty values.
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
    """A column of results or items that a read may leave out."""

    RESULTS = "results"
    KEYS = "keys"
    BATCHES = "batches"
    ATTRIBUTES = "attributes"
    CONTENTS = "contents"

    # By default an enum hashes its name in Python code, which is slow: every item asks for these.
    __hash__ = object.__hash__


ALL_COLUMNS: frozenset[Column] = frozenset()
"""Leaves out nothing."""


@dataclass(frozen=True, slots=True)
class LogStats:
    """A log's oldest offset, its next offset, its size, and the offset of each reader."""

    first_offset: int
    next_offset: int
    bytes: int
    readers: Mapping[str, int]
