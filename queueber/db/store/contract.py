"""What the engine asks of a store. RocksDB keeps it, and so does the simulation's memory store.

A second store, or one that feeds a replicated log, has to keep the same promises. One suite of
tests (`tests/db/store/test_contract.py`) runs against every store that we have.

- A batch is atomic: all of it is written or, when `write` raises, nothing. Steps of one batch take
  effect in order, so of two puts of one key the later one counts.
- Whoever reads after `write` has returned sees all of the batch, before any sync.
- `sync` makes durable what was written before it began, in the order of the writes: after a crash
  the store holds every batch up to some point, and that point is not before the last sync.
- Keys are ordered as bytes. Ranges take in their start and leave out their stop.
- Everything that changes a store is a batch, or `take_in`, which takes in whole files.
- `Unavailable` changes nothing and may be tried again; every other error is final, and the store
  must not be written any more.
"""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Protocol

from queueber.db.families import Family

Range = tuple[Family, bytes]
"""A family, and the first key after the range."""

Entries = list[tuple[bytes, bytes]]
"""Keys and values, in the order of the keys."""


class ScanIncomplete(Exception):
    """The look ahead met more deleted entries than it may skip."""


class Reads(Protocol):
    """What a store and its snapshots have in common."""

    def get(self, family: Family, key: bytes) -> bytes | None: ...

    def get_many(self, family: Family, keys: list[bytes]) -> list[bytes | None]:
        """A value, or None, for each key in order; keys may repeat."""

    def scan(self, family: Family, start: bytes, stop: bytes, limit: int) -> Entries:
        """Up to `limit` entries with `start <= key < stop`, in order."""

    def walk(self, family: Family, start: bytes, stop: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Every entry with `start <= key < stop`, in order, read as it is asked for."""


class Snapshot(Reads, Protocol):
    """Chosen ranges and families as they were at one moment, whatever is written meanwhile."""

    def close(self) -> None:
        """Let go of what is held for it. To be called before the store is closed."""


class Batch(Protocol):
    """Writes that happen together or not at all."""

    def put(self, family: Family, key: bytes, value: bytes) -> None: ...

    def delete(self, family: Family, key: bytes) -> None:
        """A key that is not there is no error."""

    def put_many(self, family: Family, entries: Iterable[tuple[bytes, bytes]]) -> None: ...

    def put_columns(self, family: Family, keys: Sequence[bytes], values: Sequence[bytes]) -> None:
        """As `put_many`; there is a value for each key."""

    def delete_many(self, family: Family, keys: Iterable[bytes]) -> None: ...

    def delete_range(self, family: Family, start: bytes, stop: bytes) -> None:
        """Every key with `start <= key < stop`."""

    def __len__(self) -> int:
        """How many steps it has; 0 when writing it would change nothing."""


class Store(Reads, Protocol):
    """An open data directory."""

    loads_path: Path
    """Where the files of loads wait: on the same disk, so that `take_in` can move them."""

    def get_neighbours(self, family: Family, keys: list[bytes]) -> list[bytes | None]:
        """As `get_many`, faster when the keys are in order with few others between them."""

    def first_key(
        self, family: Family, start: bytes, stop: bytes, *, skips_max: int
    ) -> bytes | None:
        """The first key with `start <= key < stop`.

        Raises `ScanIncomplete` rather than pass over more than `skips_max` deleted entries.
        """

    def snapshot(self, ranges: Iterable[Range], points: Iterable[Family]) -> Snapshot:
        """The store as it is now: ranges to scan, each by its end, and families to get from."""

    def batch(self) -> Batch:
        """A new batch for `write`. It is written once, by the store that made it."""

    def write(self, batch: Batch) -> None:
        """Write all of the batch, or raise `Unavailable` and write nothing."""

    def sync(self) -> None:
        """Make everything written before this call durable. May run in a thread of its own."""

    def take_in(self, family: Family, files: Sequence[tuple[Path, bytes]]) -> None:
        """Take in sorted files as they are, each given with its first key. Durable at once.

        The files go. One that has gone was taken in before: a crash came between.
        """

    def slices(self, start: bytes, stop: bytes) -> list[tuple[bytes, bytes]]:
        """The range in parts, none of which spans more than a few files."""

    def reclaim(self, family: Family, start: bytes, stop: bytes) -> None:
        """Give the space of deleted entries back to the disk. May run in a thread of its own."""

    def close(self) -> None: ...
