"""Opening after power was lost, or something was damaged: all that was synced, or a refusal."""

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from random import Random
from subprocess import PIPE

import pytest

from queueber.db.families import Family
from queueber.db.recovery.wal import SYNCED_FILE, read_synced
from queueber.db.store.contract import Store
from queueber.db.store.rocks import RocksStore
from queueber.errors import DataDirLocked, StorageCorrupt
from tests.support.folders import copy_open_store

PUTS = 30
SIZE = 400


def put(store: Store, number: int, size: int = SIZE) -> None:
    batch = store.batch()
    batch.put(Family.ITEMS, number.to_bytes(4), Random(number).randbytes(size))
    store.write(batch)


def numbers(store: Store) -> list[int]:
    found = store.scan(Family.ITEMS, b"", b"\xff" * 5, 10_000)
    return [int.from_bytes(key) for key, _ in found]


@pytest.fixture
def left(folder: Path) -> Callable[[], Path]:
    """A copy of what a killed server leaves: 30 puts, each synced, and 10 that are not."""
    with RocksStore(folder / "data") as store:
        for number in range(PUTS):
            put(store, number)
            store.sync()
        for number in range(PUTS, PUTS + 10):
            put(store, number)
        copy_open_store(folder / "data", folder / "left")

    def copy() -> Path:
        shutil.rmtree(folder / "copy", ignore_errors=True)
        shutil.copytree(folder / "left", folder / "copy")
        return folder / "copy"

    return copy


def only_log(path: Path) -> Path:
    (log,) = path.glob("*.log")
    return log


def flip(file: Path, position: int) -> None:
    held = bytearray(file.read_bytes())
    held[position] ^= 0x10
    file.write_bytes(held)


def test_store_of_a_killed_server_has_all_that_was_written(left: Callable[[], Path]) -> None:
    with RocksStore(left()) as store:
        assert numbers(store) == list(range(PUTS + 10))
        assert store.torn == ""


def test_log_cut_behind_the_last_sync_opens_with_all_that_was_synced(
    left: Callable[[], Path],
) -> None:
    path = left()
    log = only_log(path).read_bytes()
    unsynced = 10 * (SIZE + 30)
    for cut in range(len(log) - unsynced + 30, len(log), 197):
        only_log(path := left()).write_bytes(log[:cut])

        with RocksStore(path) as store:
            found = numbers(store)
            assert PUTS <= len(found) < PUTS + 10
            assert found == list(range(len(found)))
            put(store, 99)
        with RocksStore(path) as again:
            assert (numbers(again), again.torn) == ([*found, 99], "")


@pytest.mark.parametrize("kind", ["flip", "zeros", "garbage"])
def test_unsynced_end_that_came_to_disk_in_part_is_dropped_from_there(
    left: Callable[[], Path], kind: str
) -> None:
    path = left()
    log = only_log(path)
    held = bytearray(log.read_bytes())
    at = len(held) - 5 * (SIZE + 30)
    held[at : at + 600] = {"flip": held[at : at + 599] + b"?", "zeros": bytes(600)}.get(
        kind, Random(1).randbytes(600)
    )
    log.write_bytes(held)

    with RocksStore(path) as store:
        found = numbers(store)
        assert PUTS <= len(found) < PUTS + 10
        assert found == list(range(len(found)))
        assert f"the log breaks off at {log}, byte " in store.torn
        assert "nothing behind it was synced" in store.torn


def test_damage_that_synced_records_follow_is_refused_and_changes_nothing(
    left: Callable[[], Path],
) -> None:
    for position in range(40, (PUTS - 2) * SIZE, 331):
        path = left()
        log = only_log(path)
        flip(log, position)
        before = log.read_bytes()

        for read_only in (True, False):
            with pytest.raises(StorageCorrupt) as refused:
                RocksStore(path, read_only=read_only)

            text = str(refused.value)
            assert f"is damaged at {log}, byte " in text
            assert "'queueber repair'" in text
            assert log.read_bytes() == before


def test_hole_that_synced_records_follow_is_refused_and_changes_nothing(
    left: Callable[[], Path],
) -> None:
    path = left()
    with RocksStore(path) as store:
        for number in range(100, 300):
            put(store, number)
            store.sync()
        copy_open_store(path, path.with_name("hole"))
    log = only_log(path.with_name("hole"))
    held = bytearray(log.read_bytes())
    record = held.index((110).to_bytes(4) + b"\x90\x03")  # a key, and the length of its value
    start = held.rindex(b"\x01\x06synced", 0, record) - 19
    held[start : start + 1024] = bytes(1024)
    log.write_bytes(held)

    with pytest.raises(StorageCorrupt, match=r"has a hole at .*\.log, byte \d+; start the server"):
        RocksStore(path.with_name("hole"), read_only=True)
    with pytest.raises(StorageCorrupt, match=rf"is damaged at {log}, byte {start}: "):
        RocksStore(path.with_name("hole"))
    assert log.read_bytes() == held


def test_hole_in_a_store_that_another_process_has_open_is_left_alone(folder: Path) -> None:
    path = folder / "data"
    hold = "import sys; from pathlib import Path; from queueber.db.store.rocks import RocksStore;"
    hold += "store = RocksStore(Path(sys.argv[1])); print('open', flush=True); sys.stdin.read()"
    command = [sys.executable, "-c", hold, str(path)]
    with subprocess.Popen(command, stdin=PIPE, stdout=PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"open\n"
        log = only_log(path)
        with log.open("ab") as file:
            file.write(bytes(600) + b"something")
        held = log.read_bytes()

        with pytest.raises(DataDirLocked, match=f"{path} is in use by another server"):
            RocksStore(path)

        assert log.read_bytes() == held
        other.communicate(b"")


def test_end_of_a_log_that_was_noted_is_missed(folder: Path) -> None:
    """Nothing follows the last record; the note SYNCED says that it was there."""
    path = folder / "copy"
    with RocksStore(folder / "data") as store:
        for number in range(5):
            put(store, number)
        store.sync()
        store.note_synced()
        copy_open_store(folder / "data", path)
    log = only_log(path)
    held = log.read_bytes()
    assert read_synced(path) == 7  # with the note of the first sync, in the log

    for damaged in (held[:-1], held[: -SIZE - 30], held[:-1] + b"?", b""):
        log.write_bytes(damaged)
        with pytest.raises(StorageCorrupt, match=r"7 (or more )?were synced.*'queueber repair'"):
            RocksStore(path, read_only=True)
    log.unlink()
    with pytest.raises(StorageCorrupt, match="but 7 were synced: the end of its log is missing"):
        RocksStore(path)


def test_store_that_was_closed_leaves_nothing_in_its_log(folder: Path) -> None:
    with RocksStore(folder / "data") as store:
        put(store, 1)

    assert [log.stat().st_size for log in (folder / "data").glob("*.log")] == [0]
    assert read_synced(folder / "data") > 0


@pytest.mark.parametrize("how", ["missing", "cut"])
def test_log_before_the_last_is_missed(folder: Path, how: str) -> None:
    """RocksDB keeps account of the logs that it has ended."""
    path = folder / "data"
    with RocksStore(path) as store:
        for number in range(100):
            put(store, number, 500_000)
        store.sync()
        copy_open_store(path, folder / "copy")
    first, *others = sorted((folder / "copy").glob("*.log"))
    assert others
    if how == "missing":
        first.unlink()
    else:
        first.write_bytes(first.read_bytes()[: first.stat().st_size // 2])

    with pytest.raises(StorageCorrupt, match=r"(Missing WAL|Size mismatch).*'queueber repair'"):
        RocksStore(folder / "copy")


def test_sequence_never_falls_behind_the_note_through_reopening(folder: Path) -> None:
    path = folder / "data"
    for round_number in range(6):
        with RocksStore(path) as store:
            put(store, round_number)
            batch = store.batch()
            batch.delete(Family.ITEMS, round_number.to_bytes(4))
            store.write(batch)
        before = read_synced(path)
        with RocksStore(path) as store:
            assert store.torn == ""
        assert read_synced(path) >= before > 0


def test_store_that_lost_its_file_current_is_not_made_anew(folder: Path) -> None:
    path = folder / "data"
    with RocksStore(path) as store:
        put(store, 1)
    (path / "CURRENT").unlink()

    with pytest.raises(StorageCorrupt, match=r"has lost its file CURRENT.*'queueber repair'"):
        RocksStore(path)


def test_damaged_note_is_refused_and_named(folder: Path) -> None:
    path = folder / "data"
    with RocksStore(path) as store:
        put(store, 1)
    (path / SYNCED_FILE).write_bytes(b"12 junk\n")

    with pytest.raises(StorageCorrupt, match="SYNCED is damaged"):
        RocksStore(path)
