"""Loss of power: what was not synced comes to the disk in part, in any order, or not at all.

    python -m faults.power [SEED [RUNS]]

A run writes batches to a real store and syncs now and then, copies what is there at some moment,
and then does to the log behind the last sync what a loss of power may do: cut it at any byte, or
leave out any sectors of it, as zeros or as whatever was there before. The copy must open, with all
that was synced, and nothing behind the first batch that is missing.
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
    """What a run came to."""

    seed: int
    written: int
    """Batches in all,"""
    synced: int
    """those that must be there,"""
    found: int
    """and those that are."""
    failure: str = ""


@dataclass(frozen=True, slots=True)
class Crash:
    """What is on disk when power is lost."""

    path: Path
    log: Path
    synced_bytes: int
    """Of the last log. Behind it everything may be lost."""
    written: int
    synced: int


@contextmanager
def crashed_store(random: Random, folder: Path) -> Iterator[Crash]:
    path, left = folder / "data", folder / "left"
    with RocksStore(path) as store:
        # A copy of its own first, so that there are files of more than one start.
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
    """A batch over two families: both entries are there, or none."""
    batch = store.batch()
    size = random.choice([0, 10, 100, 1000, 5000, 40_000])
    batch.put(Family.ITEMS, number.to_bytes(4), random.randbytes(size))
    batch.put(Family.LEASES, number.to_bytes(4), b"x")
    store.write(batch)


def last_log(path: Path) -> Path:
    return max(path.glob("*.log"), key=lambda file: (len(file.name), file.name))


def lose_power(crash: Crash, random: Random) -> None:
    """Do to what was not synced what a loss of power may do."""
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
        # The rest of the sector in which the last sync ended.
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
            outcome.failure = f"it does not open: {error!r}"
            return outcome
        outcome.found = len(items)
        if items != leases or items != list(range(len(items))):
            outcome.failure = f"a batch is there in part, or one is missing between: {items}"
        elif len(items) < crash.synced:
            outcome.failure = "something that was synced is missing"
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
