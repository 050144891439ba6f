"""The store on a simulated disk: as `Store`, and a hundred times quicker to open.

A test holds the two to each other. Loads, which are files, it does not have.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from faults.simulation.disk import Disk, Families
from queueber.db.families import Family
from queueber.db.store.contract import Batch, Range, ScanIncomplete, Snapshot, Store
from queueber.db.store.format import ensure_format

_NOWHERE = Path("/nonexistent/loads")


class MemoryBatch(Batch):
    """As `Batch`; it has nothing of RocksDB, whose constructor it therefore leaves out."""

    __slots__ = ("_steps",)

    def __init__(self) -> None:
        self._steps: list[tuple[Family, bytes, bytes | None, bytes]] = []
        """Family, key and value. Without a value it is a deletion, up to a key if there is one."""

    def put(self, family: Family, key: bytes, value: bytes) -> None:
        self._steps.append((family, key, value, b""))

    def delete(self, family: Family, key: bytes) -> None:
        self._steps.append((family, key, None, b""))

    def put_many(self, family: Family, entries: Iterable[tuple[bytes, bytes]]) -> None:
        self._steps += [(family, key, value, b"") for key, value in entries]

    def put_columns(self, family: Family, keys: Sequence[bytes], values: Sequence[bytes]) -> None:
        self.put_many(family, zip(keys, values, strict=True))

    def delete_many(self, family: Family, keys: Iterable[bytes]) -> None:
        self._steps += [(family, key, None, b"") for key in keys]

    def delete_range(self, family: Family, start: bytes, stop: bytes) -> None:
        self._steps.append((family, start, None, stop))

    def __len__(self) -> int:
        return len(self._steps)

    def apply(self, families: Families) -> None:
        for family, key, value, stop in self._steps:
            if value is not None:
                families[family].put(key, value)
            elif stop:
                families[family].delete_range(key, stop)
            else:
                families[family].delete(key)


class _Reads:
    """Reading entries, of a disk as it is or as it was."""

    _entries: Families

    def get(self, family: Family, key: bytes) -> bytes | None:
        return self._entries[family].get(key)

    def get_many(self, family: Family, keys: list[bytes]) -> list[bytes | None]:
        return [self._entries[family].get(key) for key in keys]

    def get_neighbours(self, family: Family, keys: list[bytes]) -> list[bytes | None]:
        return self.get_many(family, keys)

    def scan(
        self, family: Family, start: bytes, stop: bytes, limit: int
    ) -> list[tuple[bytes, bytes]]:
        return self._entries[family].entries(start, stop)[:limit]

    def walk(self, family: Family, start: bytes, stop: bytes) -> Iterator[tuple[bytes, bytes]]:
        return iter(self._entries[family].entries(start, stop))


class MemorySnapshot(_Reads, Snapshot):
    def __init__(self, disk: Disk, families: Iterable[Family]) -> None:
        self._entries = {family: disk.now[family].copy() for family in families}

    def close(self) -> None:
        self._entries = {}


class MemoryStore(_Reads, Store):
    def __init__(self, disk: Disk, gives_up: Callable[[], bool] = lambda: False) -> None:
        """`gives_up` says whether a look ahead meets too many deleted entries."""
        self.disk = disk
        self.loads_path = _NOWHERE
        self._entries = disk.now
        self._gives_up = gives_up
        ensure_format(self, read_only=False)

    def first_key(
        self, family: Family, start: bytes, stop: bytes, *, skips_max: int
    ) -> bytes | None:
        if self._gives_up():
            raise ScanIncomplete
        found = self._entries[family].keys(start, stop)
        return found[0] if found else None

    def snapshot(self, ranges: Iterable[Range], points: Iterable[Family]) -> MemorySnapshot:
        return MemorySnapshot(self.disk, {*(family for family, _ in ranges), *points})

    def batch(self) -> MemoryBatch:
        return MemoryBatch()

    def write(self, batch: Batch) -> None:
        if not isinstance(batch, MemoryBatch):
            raise TypeError("a batch of another store")
        self.disk.write(batch.apply)

    def sync(self) -> None:
        self.disk.sync(self.disk.written)

    def take_in(self, family: Family, files: Sequence[tuple[Path, bytes]]) -> None:
        raise NotImplementedError("the simulation has no files")

    def slices(self, start: bytes, stop: bytes) -> list[tuple[bytes, bytes]]:
        return [(start, stop)]

    def reclaim(self, family: Family, start: bytes, stop: bytes) -> None:
        """There is nothing to give back."""

    def close(self) -> None:
        """There is nothing to close."""
