"""The contract of a store: what the engine relies on. RocksDB keeps it, and the simulation's store.

A second store, or one that feeds a replicated log, has to keep the same promises. One suite of
tests (`tests/db/store/test_contract.py`) holds every store that we have to each of them.

Writing
- A batch is atomic: `write` writes all of it or, if it raises `Unavailable`, nothing. Its steps
  take effect in order: of two puts of one key the later one counts, and a range deletion deletes
  what the same batch put before it and leaves what the batch puts after it.
- Whoever reads after `write` has returned sees all of the batch, synced or not.
- `sync` makes durable what was written before it began. After a crash the store holds every batch
  up to some point in the order of the writes, and that point is not before the last sync.
- `Unavailable` changes nothing, and the call may be repeated. Every other error is final: the
  store must not be written any more.

Reading
- Keys are ordered as bytes. A range includes its start and excludes its stop; one that stops before
  it starts is empty.
- A walk shows the entries as they are when its first one is asked for, a snapshot shows its ranges
  and families as they are when it is taken: later writes, range deletions included, change neither.

What changes a store, and what does not
- A store changes by `write` and by `take_in`, and in no other way: range deletions are steps of a
  batch, `take_in` is a change with a family, names and first keys. `sync`, `reclaim`,
  `checkpoint` and `close` change no entry. So whoever passes on every batch and every file, in
  order, has a copy.
- What is stored is shared state: two stores that got the same changes in the same order hold the
  same entries. Exceptions are local to one store and marked so: the entries of `LOCAL_ENTRIES` and
  the file `SYNCED`, which say how far this store's own log was synced. A copy leaves them out.
- The engine's memory is a function of the store: whoever opens a copy has the same engine. So a
  store keeps nothing for its caller beside the entries, and `loads_path` holds only files that
  `take_in` will move or that nobody needs.
"""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Protocol

from queueber.db.families import Family

LOCAL_ENTRIES = frozenset({(Family.DEFAULT, b"synced")})
"""Entries that belong to one store alone, by family and key; see `recovery/wal.py`."""

Range = tuple[Family, bytes]
"""A family, and the key before which the range stops."""

Entries = list[tuple[bytes, bytes]]
"""Keys and values, in the order of the keys."""


class ScanIncomplete(Exception):
    """A search passed as many deleted entries as it may without finding a key."""


class Reads(Protocol):
    """What a store and its snapshots have in common."""

    def get(self, family: Family, key: bytes) -> bytes | None: ...

    def get_many(self, family: Family, keys: list[bytes]) -> list[bytes | None]:
        """A value, or None, for each key in order; keys may repeat."""

    def scan(self, family: Family, start: bytes, stop: bytes, limit: int) -> Entries:
        """Up to `limit` entries with `start <= key < stop`, in order."""

    def walk(self, family: Family, start: bytes, stop: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Every entry with `start <= key < stop`, in order; none is read before it is asked for."""


class Snapshot(Reads, Protocol):
    """The store as it was at one moment: `get` in its families, `scan` and `walk` in its ranges.

    The stop of a scan or walk is that of a range of the snapshot, and there is one walk of a range
    at a time. What the snapshot does not hold raises `KeyError`, and so does everything after
    `close`.
    """

    def close(self) -> None:
        """Free the disk and memory that it holds. Closing the store closes its snapshots."""


class Batch(Protocol):
    """Steps that are written together or not at all, in order."""

    def put(self, family: Family, key: bytes, value: bytes) -> None: ...

    def delete(self, family: Family, key: bytes) -> None:
        """Delete a key, if it exists."""

    def put_many(self, family: Family, entries: Iterable[tuple[bytes, bytes]]) -> None: ...

    def put_columns(self, family: Family, keys: Sequence[bytes], values: Sequence[bytes]) -> None:
        """As `put_many`. Stops the server, with the batch as it was, if the lengths differ."""

    def delete_many(self, family: Family, keys: Iterable[bytes]) -> None: ...

    def delete_range(self, family: Family, start: bytes, stop: bytes) -> None:
        """Delete every key with `start <= key < stop`.

        Stops the server, with the batch as it was, if the range stops before it starts.
        """

    def __len__(self) -> int:
        """How many steps it has: one for each put, deleted key and deleted range."""


class Store(Reads, Protocol):
    """An open data directory."""

    loads_path: Path
    """The directory of staged files: on the store's disk, so that `take_in` can move them."""

    checkpoints_path: Path
    """A directory on the store's disk for what `checkpoint` makes."""

    def first_key(
        self, family: Family, start: bytes, stop: bytes, *, skips_max: int
    ) -> bytes | None:
        """The first key with `start <= key < stop`.

        May raise `ScanIncomplete` instead, so that no call passes more than `skips_max` deleted
        entries.
        """

    def snapshot(self, ranges: Iterable[Range], points: Iterable[Family]) -> Snapshot:
        """The store as it is now: ranges to scan, and families to get from."""

    def batch(self) -> Batch:
        """A new batch for `write`. It is written once, by the store that made it."""

    def write(self, batch: Batch) -> None:
        """Write all of the batch, or raise `Unavailable` and write nothing."""

    def sync(self) -> None:
        """Make everything written before this call durable. May run in another thread."""

    def take_in(self, family: Family, files: Sequence[tuple[Path, bytes]]) -> None:
        """Move sorted files into the store, each given with its first key. Durable at once.

        Of a key that is in several files, or was in the store, the last file's value counts. A file
        that is missing, but whose first key is in the store, was moved before a crash.
        """

    def checkpoint(self, path: Path) -> None:
        """Make a directory at `path` that is a store with all that was written before this call.

        `path` is on the disk of the store, and new. What the directory holds is durable, and later
        writes do not change it. It holds nothing of `loads_path`. `Unavailable` leaves no
        directory. May run in another thread.
        """

    def slices(self, start: bytes, stop: bytes) -> list[tuple[bytes, bytes]]:
        """The range cut into consecutive parts of a few files each, for `reclaim`."""

    def reclaim(self, family: Family, start: bytes, stop: bytes) -> None:
        """Give the space of deleted entries back to the disk. May run in another thread."""

    def close(self) -> None: ...
