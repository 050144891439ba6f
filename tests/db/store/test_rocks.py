"""RocksDB beyond the contract of a store: one owner, formats, damage, reading only, files."""

from pathlib import Path
from random import Random

import pytest

from queueber.db.bulk.staged_files import SstWriter
from queueber.db.families import QUEUE_FAMILIES, Family
from queueber.db.store.contract import ScanIncomplete, Store
from queueber.db.store.rocks import RocksStore
from queueber.errors import DataDirLocked, StorageCorrupt, StorageFailed
from tests.support.dumps import dump
from tests.support.folders import copy_open_store


def key(number: int) -> bytes:
    return number.to_bytes(4)


def put(store: Store, family: Family, key: bytes, value: bytes) -> None:
    batch = store.batch()
    batch.put(family, key, value)
    store.write(batch)


def delete_key(store: Store, family: Family, key: bytes) -> None:
    batch = store.batch()
    batch.delete(family, key)
    store.write(batch)


def fill(store: Store, numbers: range, family: Family = Family.ITEMS) -> None:
    batch = store.batch()
    batch.put_many(family, [(key(n), b"v%d" % n) for n in numbers])
    store.write(batch)


def delete(store: Store, numbers: range, family: Family = Family.ITEMS) -> None:
    batch = store.batch()
    batch.delete_many(family, [key(n) for n in numbers])
    store.write(batch)


def files_of(path: Path) -> dict[str, bytes]:
    """The data of a store; RocksDB's own log is no part of it."""
    return {
        file.name: file.read_bytes() for file in path.iterdir() if not file.name.startswith("LOG")
    }


# --- writing --------------------------------------------------------------------------------------


def test_write_that_is_refused_writes_nothing_of_the_batch(folder: Path, store: Store) -> None:
    """A read-only database refuses for real, with the batch half way through nowhere."""
    fill(store, range(3))
    store.close()
    with RocksStore(folder / "data", read_only=True) as refusing:
        batch = refusing.batch()
        batch.put(Family.LEASES, b"a", b"1")
        batch.delete(Family.ITEMS, key(1))
        before = dump(refusing)

        with pytest.raises(StorageFailed, match="the store cannot be written"):
            refusing.write(batch)

        assert dump(refusing) == before


def test_batch_cut_off_in_the_log_is_gone_as_a_whole(folder: Path) -> None:
    """What a crash in the middle of a write leaves: all of the batch, or none of it."""
    with RocksStore(folder / "data") as store:
        fill(store, range(3))
        store.sync()
        batch = store.batch()
        for family in QUEUE_FAMILIES:
            batch.put(family, b"torn", b"x" * 500)
        batch.delete(Family.ITEMS, key(0))
        store.write(batch)
        store.sync()
        copy_open_store(folder / "data", folder / "torn")
    (log,) = [file for file in (folder / "torn").glob("*.log") if file.stat().st_size]
    log.write_bytes(log.read_bytes()[:-700])

    with RocksStore(folder / "torn") as torn:
        assert [torn.get(family, b"torn") for family in QUEUE_FAMILIES] == [None] * len(
            QUEUE_FAMILIES
        )
        assert torn.get_many(Family.ITEMS, [key(n) for n in range(3)]) == [b"v0", b"v1", b"v2"]


# --- reading --------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_reopened", [False, True], ids=["in memory", "on disk"])
def test_first_key_behind_many_deleted_ones_gives_up(folder: Path, is_reopened: bool) -> None:
    store = RocksStore(folder / "data")
    fill(store, range(2001))
    if is_reopened:
        store.close()
        store = RocksStore(folder / "data")
    delete(store, range(2000))

    with store, pytest.raises(ScanIncomplete):
        store.first_key(Family.ITEMS, key(0), key(5000), skips_max=1000)


# --- opening --------------------------------------------------------------------------------------


def test_second_open_is_refused_and_harms_nothing(folder: Path, store: Store) -> None:
    fill(store, range(3))

    with pytest.raises(DataDirLocked, match=r"data is in use by another server; .*--data-dir"):
        RocksStore(folder / "data")

    fill(store, range(3, 5))
    assert len(store.scan(Family.ITEMS, b"", b"\xff" * 4, 10)) == 5


def test_close_frees_the_directory(folder: Path) -> None:
    for _ in range(3):
        RocksStore(folder / "data").close()


def test_close_frees_the_directory_also_while_a_batch_is_about(folder: Path) -> None:
    """The traceback of a refused write keeps its batch alive, for one."""
    store = RocksStore(folder / "data")
    batch = store.batch()
    batch.put(Family.ITEMS, b"a", b"1")

    store.close()

    RocksStore(folder / "data").close()


@pytest.mark.parametrize("number", [1, 2, 3, 4, 6])
def test_open_with_another_format_number_is_refused_and_leaves_it_so(
    folder: Path, number: int
) -> None:
    with RocksStore(folder / "data") as store:
        put(store, Family.DEFAULT, b"format", number.to_bytes(4))

    for _ in range(2):  # The second time shows that the first let go of the lock.
        with pytest.raises(
            StorageCorrupt, match=f"has format {number}, this version reads format 5"
        ):
            RocksStore(folder / "data")


def test_open_of_queues_without_a_format_number_is_refused(folder: Path) -> None:
    with RocksStore(folder / "data") as store:
        put(store, Family.QUEUES, key(1), b"")
        delete_key(store, Family.DEFAULT, b"format")

    with pytest.raises(StorageCorrupt, match="no format number"):
        RocksStore(folder / "data")


def test_open_of_a_damaged_store_is_refused_with_its_path(folder: Path) -> None:
    RocksStore(folder / "data").close()
    (folder / "data" / "CURRENT").write_text("MANIFEST-999999\n")

    with pytest.raises(StorageCorrupt, match=rf"cannot open the store at {folder}/data: "):
        RocksStore(folder / "data")


# --- damage ---------------------------------------------------------------------------------------


def damaged_in_the_middle(folder: Path) -> Path:
    """A store with a file of many blocks, one of which has a flipped bit."""
    path = folder / "data"
    with RocksStore(path) as store:
        batch = store.batch()
        # Random bytes, so that compression leaves many blocks of them.
        batch.put_many(Family.ITEMS, [(key(n), Random(n).randbytes(500)) for n in range(200)])
        store.write(batch)
    RocksStore(path).close()  # the replay of the log makes a file of it
    largest = max(path.glob("*.sst"), key=lambda file: file.stat().st_size)
    held = bytearray(largest.read_bytes())
    held[len(held) // 2] ^= 1
    largest.write_bytes(held)
    return path


def test_scan_walk_and_get_of_a_damaged_block_raise_and_never_come_to_an_end(folder: Path) -> None:
    with RocksStore(damaged_in_the_middle(folder)) as store:
        with pytest.raises(StorageCorrupt, match=r"Corruption.*\.sst.*'queueber verify'"):
            store.scan(Family.ITEMS, b"", b"\xff" * 4, 200)
        with pytest.raises(StorageCorrupt, match="Corruption"):
            list(store.walk(Family.ITEMS, b"", b"\xff" * 4))
        with pytest.raises(StorageCorrupt, match="Corruption"):
            store.get_many(Family.ITEMS, [key(n) for n in range(200)])
        with pytest.raises(StorageCorrupt, match="Corruption"):
            [store.get(Family.ITEMS, key(n)) for n in range(200)]
        assert len(store.scan(Family.ITEMS, b"", b"\xff" * 4, 50)) == 50


def test_snapshot_of_a_damaged_block_raises(folder: Path) -> None:
    with RocksStore(damaged_in_the_middle(folder)) as store:
        snapshot = store.snapshot([(Family.ITEMS, b"\xff" * 4)], [Family.ITEMS])

        with pytest.raises(StorageCorrupt, match="Corruption"):
            snapshot.scan(Family.ITEMS, b"", b"\xff" * 4, 200)
        with pytest.raises(StorageCorrupt, match="Corruption"):
            list(snapshot.walk(Family.ITEMS, b"", b"\xff" * 4))
        with pytest.raises(StorageCorrupt, match="Corruption"):
            snapshot.get_many(Family.ITEMS, [key(n) for n in range(200)])


def test_write_after_a_compaction_met_a_damaged_block_says_so_and_writes_nothing(
    folder: Path,
) -> None:
    with RocksStore(damaged_in_the_middle(folder)) as store:
        for number in (0, 100, 199):  # what does not overlap is moved, and not read
            put(store, Family.ITEMS, key(number), b"new")
        store.database.get_column_family("items").flush()
        store.reclaim(Family.ITEMS, b"", b"\xff" * 4)

        with pytest.raises(StorageCorrupt, match=r"Corruption.*\.sst.*'queueber verify'"):
            put(store, Family.ITEMS, b"later", b"")
        assert store.get(Family.ITEMS, b"later") is None


# --- read-only ------------------------------------------------------------------------------------


def test_read_only_open_reads_all_and_writes_nothing(folder: Path) -> None:
    with RocksStore(folder / "data") as store:
        fill(store, range(100))
        before = dump(store)
    files = files_of(folder / "data")

    with RocksStore(folder / "data", read_only=True) as reading:
        assert dump(reading) == before

    assert files_of(folder / "data") == files


def test_read_only_open_beside_the_owner_is_allowed(folder: Path, store: Store) -> None:
    fill(store, range(3))
    store.sync()

    with RocksStore(folder / "data", read_only=True) as reading:
        assert len(reading.scan(Family.ITEMS, b"", b"\xff" * 4, 10)) == 3


def test_read_only_open_of_nothing_is_refused_and_leaves_nothing(folder: Path) -> None:
    with pytest.raises(StorageCorrupt, match="cannot open the store"):
        RocksStore(folder / "missing", read_only=True)

    assert not (folder / "missing").exists()


# --- files that are taken in ----------------------------------------------------------------------


def sst_file(path: Path, entries: dict[bytes, bytes]) -> tuple[Path, bytes]:
    writer = SstWriter(path, "items")
    writer.put_many(sorted(entries), [entries[key] for key in sorted(entries)])
    return path, writer.finish().first_key


def test_take_in_makes_all_entries_of_all_files_there_and_the_files_go(
    folder: Path, store: Store
) -> None:
    files = [
        sst_file(folder / "a.sst", {b"a": b"1", b"c": b"2"}),
        sst_file(folder / "b.sst", {b"b": b"3"}),
    ]

    store.take_in(Family.ITEMS, files)

    assert dump(store)["items"] == [(b"a", b"1"), (b"b", b"3"), (b"c", b"2")]
    assert not list(folder.glob("*.sst"))


def test_take_in_puts_its_entries_over_those_that_were_there(folder: Path, store: Store) -> None:
    put(store, Family.ITEMS, b"a", b"old")
    file = sst_file(folder / "a.sst", {b"a": b"new"})

    store.take_in(Family.ITEMS, [file])
    assert store.get(Family.ITEMS, b"a") == b"new"

    delete_key(store, Family.ITEMS, b"a")
    assert store.get(Family.ITEMS, b"a") is None


def test_take_in_of_files_that_overlap_lets_the_later_one_count(folder: Path, store: Store) -> None:
    files = [sst_file(folder / f"{n}.sst", {b"a": b"%d" % n, b"z": b""}) for n in range(3)]

    store.take_in(Family.ITEMS, files)

    assert store.get(Family.ITEMS, b"a") == b"2"


def test_take_in_again_passes_over_what_was_taken_in(folder: Path, store: Store) -> None:
    files = [sst_file(folder / f"{n}.sst", {b"%d" % n: b"x"}) for n in range(2)]
    store.take_in(Family.ITEMS, files[:1])

    store.take_in(Family.ITEMS, files)
    store.take_in(Family.ITEMS, files)

    assert dump(store)["items"] == [(b"0", b"x"), (b"1", b"x")]


def test_take_in_of_a_file_that_is_lost_is_refused_and_takes_none(
    folder: Path, store: Store
) -> None:
    file = sst_file(folder / "a.sst", {b"a": b"1"})

    with pytest.raises(StorageCorrupt, match=r"b.sst is missing: a load was half committed"):
        store.take_in(Family.ITEMS, [file, (folder / "b.sst", b"b")])

    assert dump(store)["items"] == []
    assert file[0].exists()


def test_take_in_of_a_damaged_file_is_refused_with_its_path_and_takes_none(
    folder: Path, store: Store
) -> None:
    sound = sst_file(folder / "a.sst", {b"a": b"1"})
    cut = sst_file(folder / "b.sst", {b"b": b"2"})
    cut[0].write_bytes(cut[0].read_bytes()[:-10])

    with pytest.raises(StorageCorrupt, match=r"Corruption.*b\.sst.*'queueber repair'"):
        store.take_in(Family.ITEMS, [sound, cut])

    assert dump(store)["items"] == []
    assert sound[0].exists()


def test_take_in_of_no_files_does_nothing(store: Store) -> None:
    store.take_in(Family.ITEMS, [])

    assert dump(store)["items"] == []


def test_a_store_from_before_a_family_was_added_is_read_once_a_server_has_added_it(
    tmp_path: Path,
) -> None:
    with RocksStore(tmp_path) as store:
        fill(store, range(3))
        store.database.drop_column_family(Family.ITEM_EXPIRY.family_name)

    with pytest.raises(StorageCorrupt, match="older than item_expiry, which a server adds"):
        RocksStore(tmp_path, read_only=True)
    with RocksStore(tmp_path):
        pass
    with RocksStore(tmp_path, read_only=True) as store:
        assert store.get(Family.ITEMS, key(2)) == b"v2"
