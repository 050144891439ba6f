"""Values of bulk loads, their parts and files."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum


class LoadState(Enum):
    """The state of a load."""

    STAGING = "staging"
    COMMITTING = "committing"
    COMMITTED = "committed"


@dataclass(frozen=True, slots=True)
class LoadRef:
    """Identifies a load. Loads of one name succeed each other in rising epochs."""

    name: str
    epoch: int = 0


@dataclass(frozen=True, slots=True)
class LoadInfo:
    """A load, and what a client needs to build its files."""

    ref: LoadRef
    state: LoadState
    batch: str
    started_at_ms: int
    """The time at which its items count as added."""
    expires_at_ms: int
    """When the server drops it, if it gets no call before."""
    rows: int
    """Rows staged so far; once committed, items added."""
    duplicates: int
    """Once committed, rows left out because of their key."""
    queue_number: int
    batch_number: int
    id_head: bytes
    dedup_window_ms: int
    item_bytes_max: int
    file_bytes_max: int
    directory: str
    """Where the server keeps the load's files."""
    token: bytes
    """The content of the file `token` in that directory."""


@dataclass(frozen=True, slots=True)
class StagedFile:
    """A sorted file of entries of one family, with what the client states about it."""

    name: str
    family: str
    """The name of a family, or "claims", which lists the keys of items."""
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
    """The files and counts that one attempt at a partition has staged."""

    ref: PartRef
    files: Sequence[StagedFile]
    rows: int
    contents_bytes: int
    digest: bytes
    """The digest of its ids, as in a receipt; zeros if the load has no batch."""
    levels: Sequence[int]
    """Numbers of ready items of priority 9, 8, and so on."""
    delayed: int
    delayed_first_ms: int
    """The earliest time at which a delayed item is visible; 0 if there is none."""
    keys: int
    """Number of items with a key, if the load has a dedup window."""


@dataclass(slots=True)
class Rows:
    """Rows of a partition, in order. An empty column means the default for every row."""

    contents: Sequence[bytes]
    visible_at_ms: Sequence[int] = ()
    """A time that is not after the start of the load makes the row ready."""
    priorities: Sequence[int] = ()
    keys: Sequence[str] = ()
    """An empty text is no key."""
    attributes: Sequence[Mapping[str, str]] = ()
