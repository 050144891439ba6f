"""Power failures: unsynced writes reach the disk in part, in any order, or not at all.

    python -m faults.power [SEED [RUNS]]

A run writes batches to a real store, syncs now and then, copies the files at some moment, and then
changes the unsynced part of the log as a power failure may: it cuts the log at any byte, or
replaces sectors of it with zeros or garbage. The copy must open with all synced batches, and with
no batch after the first missing one.
"""

import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random

from queueber.db.families import Family
from queueber.db.store.contract import Store
from queueber.db.store.rocks import RocksStore

SECTOR = 512


@dataclass(slots=True)
class Outcome:
    """The outcome of a run."""

    seed: int
    written: int
    """Number of batches written."""
    synced: int
    """Number of batches that were synced."""
    found: int
    """Number of batches in the store afterwards."""
    failure: str = ""


@dataclass(frozen=True, slots=True)
class Crash:
    """The files at the moment of the power failure."""

    path: Path
    log: Path
    synced_bytes: int
    """How much of the last log is synced. Everything after it may be lost."""
    written: int
    synced: int


@contextmanager
def crashed_store(random: Random, folder: Path) -> Iterator[Crash]:
    path, left = folder / "data", folder / "left"
    with RocksStore(path) as store:
        # Reopen a copy first, so that there are files of more than one start.
        put(store, 0, random)
    sync_every = random.choice([1, 2, 5, 20])
    written, synced, synced_bytes = 1, 1, 0
    with RocksStore(path) as store:
        for _ in range(random.randint(1, 60)):
            put(store, written, random)
            written += 1
            if written % sync_every == 0:
                store.sync()
                synced = written
                synced_bytes = last_log(path).stat().st_size
                if random.random() < 0.1:
                    store.note_synced()
        shutil.copytree(path, left)
    try:
        yield Crash(left, last_log(left), synced_bytes, written, synced)
    finally:
        shutil.rmtree(path)
        shutil.rmtree(left)


def put(store: Store, number: int, random: Random) -> None:
    """Write a batch to two families: a store must have both entries or none."""
    batch = store.batch()
    size = random.choice([0, 10, 100, 1000, 5000, 40_000])
    batch.put(Family.ITEMS, number.to_bytes(4), random.randbytes(size))
    batch.put(Family.LEASES, number.to_bytes(4), b"x")
    store.write(batch)


def last_log(path: Path) -> Path:
    return max(path.glob("*.log"), key=lambda file: (len(file.name), file.name))


def lose_power(crash: Crash, random: Random) -> None:
    """Change the unsynced part as a power failure may."""
    held = bytearray(crash.log.read_bytes())
    start = crash.synced_bytes
    if random.random() < 0.5:
        del held[random.randint(start, len(held)) :]
    else:
        first = -(-start // SECTOR)
        for sector in range(first, -(-len(held) // SECTOR)):
            if random.random() < 0.3:
                at, end = sector * SECTOR, min((sector + 1) * SECTOR, len(held))
                held[at:end] = (
                    bytes(end - at) if random.random() < 0.7 else random.randbytes(end - at)
                )
        # The rest of the sector in which the synced part ends.
        end = min(first * SECTOR, len(held))
        if random.random() < 0.3:
            held[start:end] = bytes(end - start)
    crash.log.write_bytes(held)


def run_once(seed: int, folder: Path) -> Outcome:
    random = Random(seed)
    with crashed_store(random, folder) as crash:
        lose_power(crash, random)
        outcome = Outcome(seed, crash.written, crash.synced, 0)
        try:
            with RocksStore(crash.path) as store:
                items, leases = numbers(store, Family.ITEMS), numbers(store, Family.LEASES)
                put(store, 10_000, random)
            with RocksStore(crash.path) as again:
                assert numbers(again, Family.ITEMS) == [*items, 10_000]
        except Exception as error:  # noqa: BLE001  every way to fail is a finding
            outcome.failure = f"the store does not open: {error!r}"
            return outcome
        outcome.found = len(items)
        if items != leases or items != list(range(len(items))):
            outcome.failure = f"a batch is incomplete, or one is missing before others: {items}"
        elif len(items) < crash.synced:
            outcome.failure = "a synced batch is missing"
        return outcome


def numbers(store: Store, family: Family) -> list[int]:
    return [int.from_bytes(key) for key, _ in store.walk(family, b"", b"\xff" * 5)]


def main() -> None:
    seed, runs = (*map(int, sys.argv[1:]), *[1, 1000][len(sys.argv) - 1 :])
    memory = "/dev/shm"  # nosec B108  # a directory of our own is made in it
    with tempfile.TemporaryDirectory(prefix="queueber-", dir=memory) as folder:
        lost = failures = 0
        for number in range(seed, seed + runs):
            outcome = run_once(number, Path(folder))
            lost += outcome.written - outcome.found
            if outcome.failure:
                failures += 1
                print(outcome)
    print(f"{'seeds from':>10} {'runs':>6} {'unsynced batches lost':>22} {'failures':>9}")
    print(f"{seed:10} {runs:6} {lost:22} {failures:9}")
    sys.exit(bool(failures))


if __name__ == "__main__":
    main()
