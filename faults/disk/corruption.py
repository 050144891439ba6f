"""Damage to files: it is found or harmless, never hides data silently, and can be repaired.

    python -m faults.disk.corruption [SEED [RUNS]]

A run copies the store of a killed server and damages one of its files: it flips a bit, cuts the
file, fills a part with zeros, or deletes it. Then opening or reading the store must fail with an
error that says what to do, or the store must have exactly its old data; `queueber verify` must
report the damage unless the data is the same; and `queueber repair` must make a valid store.
"""

import shutil
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from random import Random

from click.testing import CliRunner

from queueber.cli import program
from queueber.db.families import Family
from queueber.db.recovery.wal import SYNCED_KEY
from queueber.db.store.rocks import RocksStore
from queueber.engine.open import Engine, open_engine
from queueber.errors import StorageCorrupt
from queueber.ids import IdSource
from queueber.limits import MIB
from queueber.model import NewItems, Producer, QueueSettings
from tests.support.operations import add, complete, create_queue, fail, poll

NOW_MS = 1_700_000_000_000
KINDS = ("flip", "cut", "zeros", "missing")
NEVER_READ = ("LOG", "LOCK", "IDENTITY", "rocksdict-config.json")
"""RocksDB's info log, its lock, and other files without data."""

Contents = dict[str, list[tuple[bytes, bytes]]]


@dataclass(slots=True)
class Outcome:
    seed: int
    file: str
    kind: str
    told: str
    """`refused`, or `the same`."""
    repaired: str = ""
    """The losses that `queueber repair` printed."""
    failure: str = ""


def make_store(folder: Path) -> Path:
    """Make the files of a killed server: tables of several starts, and a log with entries."""
    path, left = folder / "data", folder / "left"
    random = Random(1)
    ids = IdSource(random)
    for start in range(3):
        with RocksStore(path) as store:
            engine = open_engine(store, ids)
            for name in ("first", "second"):
                create_queue(engine, name, QueueSettings(), NOW_MS)
                _use(engine, name, random, start)
            store.sync()
            store.note_synced()
            if start == 2:
                shutil.copytree(path, left)
    return left


def _use(engine: Engine, name: str, random: Random, start: int) -> None:
    queue = engine.queues.get(name)
    for number in range(8):
        contents = [random.randbytes(random.choice([10, 300, 3000])) for _ in range(10)]
        producer = Producer("p", epoch=start + 1, sequence=number + 1)
        keys = [f"{start}-{number}-{n}" for n in range(10)]
        items = NewItems(contents, keys=keys, batch=f"batch {number % 3}", producer=producer)
        add(engine, queue, items, NOW_MS)
        engine.store.sync()
        (polled,) = poll(engine, queue, [4], lease_ms=60_000, answer_bytes_max=MIB, now_ms=NOW_MS)
        first, second, *_ = polled.ids
        complete(engine, queue, [first], [polled.lease_id], [b"done"], NOW_MS)
        fail(engine, queue, [second], [polled.lease_id], ["no"], [None], NOW_MS)
        engine.store.sync()


def contents_of(path: Path) -> Contents:
    """Everything that a server would read, with the checks of a start."""
    with RocksStore(path) as store:
        open_engine(store, IdSource(Random(2)))
        return {
            family.family_name: [
                entry
                for entry in store.walk(family, b"", b"\xff" * 64)
                if entry[0] != SYNCED_KEY or family is not Family.DEFAULT
            ]
            for family in Family
        }


def damage(path: Path, random: Random) -> tuple[str, str]:
    """Damage one file; returns its name and the kind of damage."""
    files = sorted(f for f in path.iterdir() if f.is_file() and not f.name.startswith(NEVER_READ))
    kinds = {file.name.partition("-")[0].rpartition(".")[2]: file for file in files}
    kind_of_file = random.choice(sorted(kinds))
    file = random.choice([f for f in files if kind_of_file in f.name])
    held = bytearray(file.read_bytes())
    kind = random.choice(KINDS if held else KINDS[-1:])
    at = random.randrange(len(held)) if held else 0
    if kind == "flip":
        held[at] ^= 1 << random.randrange(8)
    elif kind == "cut":
        del held[at:]
    elif kind == "zeros":
        end = min(len(held), at + 512)
        held[at:end] = bytes(end - at)
    file.write_bytes(held)
    if kind == "missing":
        file.unlink()
    return file.name, f"{kind} at {at}"


def run_once(seed: int, left: Path, expected: Contents, folder: Path) -> Outcome:
    random = Random(seed)
    damaged, into = folder / "damaged", folder / "repaired"
    for each in (damaged, into):
        shutil.rmtree(each, ignore_errors=True)
    shutil.copytree(left, damaged)
    outcome = Outcome(seed, *damage(damaged, random), "")
    shutil.rmtree(folder / "opened", ignore_errors=True)
    shutil.copytree(damaged, folder / "opened")
    verified = CliRunner().invoke(program, ["verify", "--data-dir", str(damaged)])
    try:
        found = contents_of(folder / "opened")
        outcome.told = "the same"
        if found != expected:
            outcome.failure = "the store has other data"
    except StorageCorrupt as error:
        outcome.told = "refused"
        if "queueber " not in str(error) and "backup" not in str(error):
            outcome.failure = f"an error without advice: {error}"
    except Exception as error:  # noqa: BLE001  every other way to fail is a finding
        outcome.failure = f"an unclear error: {error!r}"
    if verified.exit_code not in (0, 1, 5) or (verified.exit_code == 0) != (
        outcome.told == "the same"
    ):
        outcome.failure = outcome.failure or f"verify says {verified.exit_code} {verified.output}"
    repaired = CliRunner().invoke(
        program, ["repair", "--data-dir", str(damaged), "--into", str(into)]
    )
    outcome.repaired = repaired.output
    checked = CliRunner().invoke(program, ["verify", "--data-dir", str(into)])
    if repaired.exit_code not in (0, 1) or checked.exit_code != 0:
        outcome.failure = outcome.failure or f"not repaired: {repaired.output} {checked.output}"
    elif repaired.exit_code == 0 and contents_of(into) != expected:
        outcome.failure = outcome.failure or "a loss was not printed"
    return outcome


def main() -> None:
    seed, runs = (*map(int, sys.argv[1:]), *[1, 300][len(sys.argv) - 1 :])
    told: dict[str, int] = {}
    failures = 0
    memory = "/dev/shm"  # nosec B108  # a directory of our own is made in it
    with tempfile.TemporaryDirectory(prefix="queueber-", dir=memory) as name:
        folder = Path(name)
        left = make_store(folder)
        shutil.copytree(left, folder / "sound")
        expected = contents_of(folder / "sound")
        for number in range(seed, seed + runs):
            outcome = run_once(number, left, expected, folder)
            kind = outcome.file.partition("-")[0].rpartition(".")[2]
            which = f"{kind} {outcome.kind.split()[0]}: {outcome.told}"
            told[which] = told.get(which, 0) + 1
            if outcome.failure:
                failures += 1
                print(outcome)
    for which, count in sorted(told.items()):
        print(f"{count:6} {which}")
    print(f"seeds from {seed}: {runs} damaged files, {failures} failures")
    sys.exit(bool(failures))


if __name__ == "__main__":
    main()
