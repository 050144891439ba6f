"""The store on a simulated disk. It keeps the contract of a store, and opens in no time.

It has no files, so there are no loads and no backups in the simulation.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from weakref import WeakSet

from faults.simulation.disk import Disk, Families
from queueber.db.families import Family
from queueber.db.store.contract import Batch, Entries, Range, ScanIncomplete
from queueber.db.store.format import ensure_format
from queueber.errors import invariant

_NOWHERE = Path("/nonexistent/files")

Step = Callable[[Families], None]


class MemoryBatch:
    """Steps to apply in order."""

    __slots__ = ("_steps",)

    def __init__(self) -> None:
        self._steps: list[Step] = []

    def put(self, family: Family, key: bytes, value: bytes) -> None:
        self._steps.append(lambda families: families[family].put(key, value))

    def delete(self, family: Family, key: bytes) -> None:
        self._steps.append(lambda families: families[family].delete(key))

    def put_many(self, family: Family, entries: Iterable[tuple[bytes, bytes]]) -> None:
        for key, value in entries:
            self.put(family, key, value)

    def put_columns(self, family: Family, keys: Sequence[bytes], values: Sequence[bytes]) -> None:
        invariant(len(keys) == len(values), "a value for each key", family=family.family_name)
        self.put_many(family, zip(keys, values, strict=True))

    def delete_many(self, family: Family, keys: Iterable[bytes]) -> None:
        for key in keys:
            self.delete(family, key)

    def delete_range(self, family: Family, start: bytes, stop: bytes) -> None:
        invariant(start <= stop, "a range starts before it stops", start=start, stop=stop)
        self._steps.append(lambda families: families[family].delete_range(start, stop))

    def __len__(self) -> int:
        return len(self._steps)

    def apply(self, families: Families) -> None:
        for step in self._steps:
            step(families)


class MemorySnapshot:
    """Copies of the families that it shows."""

    def __init__(self, now: Families, ranges: Iterable[Range], points: Iterable[Family]) -> None:
        ranges, points = list(ranges), list(points)
        copies = {family: now[family].copy() for family in {*(f for f, _ in ranges), *points}}
        self._ranges = {(family, stop): copies[family] for family, stop in ranges}
        self._points = {family: copies[family] for family in points}

    def get(self, family: Family, key: bytes) -> bytes | None:
        return self._points[family].get(key)

    def get_many(self, family: Family, keys: list[bytes]) -> list[bytes | None]:
        return [self._points[family].get(key) for key in keys]

    def scan(self, family: Family, start: bytes, stop: bytes, limit: int) -> Entries:
        return self._ranges[family, stop].entries(start, stop, limit)

    def walk(self, family: Family, start: bytes, stop: bytes) -> Iterator[tuple[bytes, bytes]]:
        yield from self._ranges[family, stop].entries(start, stop)

    def close(self) -> None:
        self._ranges.clear()
        self._points.clear()


class MemoryStore:
    def __init__(self, disk: Disk, gives_up: Callable[[], bool] = lambda: False) -> None:
        """`gives_up` says whether `first_key` meets too many deleted entries."""
        self.disk = disk
        self.loads_path = self.checkpoints_path = _NOWHERE
        self._entries = disk.now
        self._gives_up = gives_up
        self.gave_up: set[tuple[Family, bytes]] = set()
        """Where searches of `first_key` began that gave up."""
        self._snapshots: WeakSet[MemorySnapshot] = WeakSet()
        ensure_format(self, read_only=False)

    def get(self, family: Family, key: bytes) -> bytes | None:
        return self._entries[family].get(key)

    def get_many(self, family: Family, keys: list[bytes]) -> list[bytes | None]:
        return [self._entries[family].get(key) for key in keys]

    def scan(self, family: Family, start: bytes, stop: bytes, limit: int) -> Entries:
        return self._entries[family].entries(start, stop, limit)

    def walk(self, family: Family, start: bytes, stop: bytes) -> Iterator[tuple[bytes, bytes]]:
        yield from self._entries[family].entries(start, stop)

    def first_key(
        self, family: Family, start: bytes, stop: bytes, *, skips_max: int
    ) -> bytes | None:
        if self._gives_up():
            self.gave_up.add((family, start))
            raise ScanIncomplete
        found = self._entries[family].keys(start, stop)
        return found[0] if found else None

    def snapshot(self, ranges: Iterable[Range], points: Iterable[Family]) -> MemorySnapshot:
        taken = MemorySnapshot(self._entries, ranges, points)
        self._snapshots.add(taken)
        return taken

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

    def checkpoint(self, path: Path) -> None:
        raise NotImplementedError("the simulation has no files")

    def slices(self, start: bytes, stop: bytes) -> list[tuple[bytes, bytes]]:
        return [(start, stop)]

    def reclaim(self, family: Family, start: bytes, stop: bytes) -> None:
        """Deleted entries take no space."""

    def close(self) -> None:
        for snapshot in list(self._snapshots):
            snapshot.close()
