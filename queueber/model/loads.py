"""Bulk loads, their parts and files."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum


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
class LoadInfo:
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
