"""The upper limit: the batches of our engine, written directly to RocksDB with group sync.

Nothing is read, encoded, sent or kept in memory: one thread puts entries that already exist,
another syncs. No server that writes the same can be faster.
"""

import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from bench.engine import new_engine_queue, run_group
from bench.measure import Shape
from bench.peers.contest import CALLERS, column
from queueber.db.families import Family
from queueber.db.store.contract import Batch, Store
from queueber.db.store.rocks import RocksBatch, RocksStore

_ITEMS = {1: 10_000, 100: 100_000}
"""By items in a call: enough that a round takes a good part of a second."""

Entry = tuple[Family, bytes, bytes | None]
"""A value of None deletes."""


class _Recording(RocksBatch):
    """Records its entries. The measured calls delete no ranges."""

    __slots__ = ("entries",)

    def __init__(self, handles: Any) -> None:
        super().__init__(handles)
        self.entries: list[Entry] = []

    def put(self, family: Family, key: bytes, value: bytes) -> None:
        self.entries.append((family, key, value))
        super().put(family, key, value)

    def delete(self, family: Family, key: bytes) -> None:
        self.entries.append((family, key, None))
        super().delete(family, key)

    def put_many(self, family: Family, entries: Iterable[tuple[bytes, bytes]]) -> None:
        for key, value in entries:
            self.put(family, key, value)

    def put_columns(self, family: Family, keys: Sequence[bytes], values: Sequence[bytes]) -> None:
        self.put_many(family, zip(keys, values, strict=True))

    def delete_many(self, family: Family, keys: Iterable[bytes]) -> None:
        for key in keys:
            self.delete(family, key)


class _RecordingStore(RocksStore):
    def __init__(self, path: Path) -> None:
        self.written: list[_Recording] = []
        super().__init__(path)

    def batch(self) -> _Recording:
        self.written.append(recording := _Recording(self._handles))
        return recording

    def write(self, batch: Batch) -> None:
        if not isinstance(batch, _Recording) or len(batch.entries) != len(batch):
            raise AssertionError(f"not all of {len(batch)} entries were recorded")
        super().write(batch)

    def take_written(self) -> list[list[Entry]]:
        taken, self.written = self.written, []
        return [each.entries for each in taken]


def record(folder: Path, shape: Shape) -> tuple[list[list[Entry]], list[list[Entry]]]:
    """The batches of adds, and those of polls and removes, by call."""
    with tempfile.TemporaryDirectory(dir=folder) as path, _RecordingStore(Path(path)) as store:
        queue = new_engine_queue(store)
        store.take_written()
        contents = shape.contents()
        calls = _ITEMS[shape.items] // shape.items
        for _ in range(calls):
            queue.add(contents)
        added = store.take_written()
        for _ in range(calls):
            queue.poll(shape.items)
            queue.remove()
        return added, store.take_written()


def replay(store: Store, batches: Sequence[list[Entry]], callers: int, writes_a_call: int) -> float:
    """Calls a second."""
    coming = iter(batches)

    def call() -> int:
        for _ in range(writes_a_call):
            entries = next(coming, None)
            if entries is None:
                return 0
            batch = store.batch()
            for family, key, value in entries:
                if value is None:
                    batch.delete(family, key)
                else:
                    batch.put(family, key, value)
            store.write(batch)
        return 1

    done = run_group(call, store.sync, 60.0, callers)
    return done.items_per_second


def measure_limit(folder: Path, shape: Shape, repeat: int) -> dict[str, list[float]]:
    """Items a second in each round, by column."""
    added, taken = record(folder, shape)
    callers = CALLERS[shape.items]
    rounds: dict[str, list[float]] = {}
    for _ in range(repeat):
        with tempfile.TemporaryDirectory(dir=folder) as path, RocksStore(Path(path)) as store:
            for work, batches, writes in (("add", added, 1), ("take", taken, 2)):
                rate = replay(store, batches, callers, writes) * shape.items
                rounds.setdefault(column(work, shape), []).append(rate)
    return rounds
