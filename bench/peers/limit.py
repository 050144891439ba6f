"""The upper limits: batches of our engine, written directly to RocksDB with group sync.

Nothing is read, encoded, sent or kept in memory: one thread puts entries that already exist,
another syncs. No server that writes the same can be faster.

There are two yardsticks. `AS_BEFORE` writes an entry for each item, as format 4 did: it does not
move when our engine writes less, so it tells how fast the server has become. `NOW` writes what the
engine writes now: it tells how far the server still is from what its own batches cost.
"""

import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from random import Random
from typing import Any

from bench.engine import new_engine_queue, run_group
from bench.measure import Shape
from bench.peers.contest import CALLERS, column
from bench.peers.entry_an_item import Batch as Entries
from bench.peers.entry_an_item import Entry, make_batches
from bench.peers.results import AS_BEFORE, NOW
from queueber.clock import SystemClock
from queueber.db.families import Family
from queueber.db.store.contract import Batch, Store
from queueber.db.store.rocks import RocksBatch, RocksStore

_CALLS = {AS_BEFORE: {1: 10_000, 100: 1000}, NOW: {1: 10_000, 100: 5000}}
"""By yardstick and items in a call: enough that a round takes a good part of a second."""

Recorded = tuple[list[Entries], list[Entries]]
"""The batches of adds, and those of polls and removes in turn."""


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
        self._known: dict[bytes | None, bytes | None] = {}
        super().__init__(path)

    def batch(self) -> _Recording:
        self.written.append(recording := _Recording(self._handles))
        return recording

    def write(self, batch: Batch) -> None:
        if not isinstance(batch, _Recording) or len(batch.entries) != len(batch):
            raise AssertionError(f"not all of {len(batch)} entries were recorded")
        super().write(batch)

    def take_written(self) -> list[Entries]:
        taken, self.written = self.written, []
        # Calls with equal contents write equal blocks: keep one of them, not gigabytes.
        known = self._known
        return [
            [(family, key, known.setdefault(value, value)) for family, key, value in each.entries]
            for each in taken
        ]


def make_as_before(shape: Shape) -> Recorded:
    """What format 4 wrote."""
    calls = _CALLS[AS_BEFORE][shape.items]
    now_ms = SystemClock().now_ms()
    return make_batches(shape.contents(), calls, random=Random(), start_ms=now_ms)


def record(folder: Path, shape: Shape) -> Recorded:
    """What the engine writes now."""
    with tempfile.TemporaryDirectory(dir=folder) as path, _RecordingStore(Path(path)) as store:
        queue = new_engine_queue(store)
        store.take_written()
        contents = shape.contents()
        calls = _CALLS[NOW][shape.items]
        for _ in range(calls):
            queue.add(contents)
        added = store.take_written()
        for _ in range(calls):
            queue.poll(shape.items)
            queue.remove()
        return added, store.take_written()


def replay(store: Store, batches: Sequence[Entries], callers: int, writes_a_call: int) -> float:
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


def measure_limits(folder: Path, shape: Shape, repeat: int) -> dict[str, dict[str, list[float]]]:
    """Items a second in each round, by yardstick and column; the yardsticks are used in turn."""
    recorded = {AS_BEFORE: make_as_before(shape), NOW: record(folder, shape)}
    callers = CALLERS[shape.items]
    rounds: dict[str, dict[str, list[float]]] = {yardstick: {} for yardstick in recorded}
    for _ in range(repeat):
        for yardstick, (added, taken) in recorded.items():
            with tempfile.TemporaryDirectory(dir=folder) as path, RocksStore(Path(path)) as store:
                for work, batches, writes in (("add", added, 1), ("take", taken, 2)):
                    rate = replay(store, batches, callers, writes) * shape.items
                    rounds[yardstick].setdefault(column(work, shape), []).append(rate)
    return rounds
