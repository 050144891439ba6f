"""Salvage: every entry that can be read, a gap for what cannot, and the store stays as it is."""

import shutil
from pathlib import Path
from random import Random

import pytest

from queueber.db.families import Family
from queueber.db.recovery.salvage import Gap, Salvage, find_gaps
from queueber.db.recovery.wal import SYNCED_KEY, synced_note
from queueber.db.store.contract import Store
from queueber.db.store.rocks import RocksStore
from tests.support.folders import copy_open_store

ENTRIES = 1500


def put(store: Store, numbers: range) -> None:
    batch = store.batch()
    batch.put_many(Family.ITEMS, [(key(n), Random(n).randbytes(500)) for n in numbers])
    store.write(batch)


def key(number: int) -> bytes:
    return b"\0\0\0\1" + number.to_bytes(16)


@pytest.fixture
def path(folder: Path) -> Path:
    with RocksStore(folder / "data") as store:
        put(store, range(ENTRIES))
    return folder / "data"


def items_file(path: Path) -> Path:
    return max(path.glob("*.sst"), key=lambda file: file.stat().st_size)


def flip(file: Path, *positions: int) -> None:
    held = bytearray(file.read_bytes())
    for position in positions:
        held[position] ^= 1
    file.write_bytes(held)


def salvaged(path: Path, folder: Path) -> tuple[list[int], list[str], list[Gap]]:
    """The numbers that were saved, the remarks, and the gaps."""
    gaps: list[Gap] = []
    shutil.rmtree(folder / "new", ignore_errors=True)
    with Salvage(path, folder / "work") as salvage, RocksStore(folder / "new") as new:
        salvage.copy_to(new, gaps.append)
        saved = new.scan(Family.ITEMS, b"", b"\xff" * 20, 10_000)
        assert all(value == Random(int.from_bytes(k[4:])).randbytes(500) for k, value in saved)
        # Its own note, of its first sync; not that of the old store.
        assert new.get(Family.DEFAULT, SYNCED_KEY) in (None, synced_note(1))
        return [int.from_bytes(k[4:]) for k, _ in saved], salvage.remarks, gaps


def test_sound_store_is_saved_as_a_whole(path: Path, folder: Path) -> None:
    assert salvaged(path, folder) == (list(range(ENTRIES)), [], [])
    with RocksStore(path, read_only=True) as store:
        assert find_gaps(store) == []


def test_damaged_blocks_are_gaps_and_the_rest_is_saved(path: Path, folder: Path) -> None:
    flip(items_file(path), 100_000, 400_000)
    before = {file: file.read_bytes() for file in path.iterdir()}

    saved, remarks, gaps = salvaged(path, folder)

    assert (len(gaps), remarks) == (2, [])
    # A block of 4 KiB holds eight of them.
    assert len(saved) == ENTRIES - 16
    lost = sorted(set(range(ENTRIES)) - set(saved))
    assert all(any(gap.after < key(n) < (gap.before or b"\xff") for gap in gaps) for n in lost)
    assert str(gaps[0]).startswith("items between 00000001")
    assert ".sst" in gaps[0].reason
    assert {file: file.read_bytes() for file in path.iterdir()} == before
    with RocksStore(path, read_only=True) as store:
        assert find_gaps(store) == gaps


@pytest.mark.parametrize("name", ["CURRENT", "MANIFEST-*"])
def test_store_without_its_list_of_files_is_put_together(
    path: Path, folder: Path, name: str
) -> None:
    for file in path.glob(name):
        file.unlink()

    saved, remarks, gaps = salvaged(path, folder)

    assert (saved, gaps) == (list(range(ENTRIES)), [])
    assert len(remarks) == 1
    assert "the list of its files was rebuilt" in remarks[0]


def test_file_without_a_footer_is_left_out_and_named(path: Path, folder: Path) -> None:
    file = items_file(path)
    flip(file, file.stat().st_size - 3)  # in the number that tells what it is

    saved, remarks, _ = salvaged(path, folder)

    assert saved == []
    assert f"{file.name} cannot be read at all, and everything in it is lost" in remarks


@pytest.mark.parametrize("from_end", [4000, 3700])
def test_file_that_is_listed_anew_but_cannot_be_opened_is_left_out_and_named(
    path: Path, folder: Path, from_end: int
) -> None:
    """RocksDB looks at the entries of a file when it makes its list, not at all that it needs."""
    file = items_file(path)
    with RocksStore(path) as store:
        put(store, range(ENTRIES, ENTRIES + 10))
    flip(file, file.stat().st_size - from_end)
    (path / "CURRENT").unlink()

    saved, remarks, gaps = salvaged(path, folder)

    assert (saved, gaps) == (list(range(ENTRIES, ENTRIES + 10)), [])
    assert f"{file.name} cannot be read at all, and everything in it is lost" in remarks


def test_log_is_saved_up_to_its_damage(folder: Path) -> None:
    with RocksStore(folder / "data") as store:
        for number in range(50):
            put(store, range(number, number + 1))
            store.sync()
        copy_open_store(folder / "data", folder / "left")
    (log,) = (folder / "left").glob("*.log")
    flip(log, log.stat().st_size // 2)

    saved, remarks, _ = salvaged(folder / "left", folder)

    assert 20 < len(saved) < 30
    assert saved == list(range(len(saved)))
    assert len(remarks) == 1
    assert remarks[0].startswith(f"the log breaks off at {log}, byte ")


def test_missing_end_of_the_log_is_told(folder: Path) -> None:
    with RocksStore(folder / "data") as store:
        put(store, range(10))
        store.sync()
        store.note_synced()
        copy_open_store(folder / "data", folder / "left")
    for log in (folder / "left").glob("*.log"):
        log.unlink()

    saved, remarks, _ = salvaged(folder / "left", folder)

    assert saved == []
    assert remarks == ["the store ends with change 0, but 12 were synced: the others are lost"]
