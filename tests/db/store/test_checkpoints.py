"""Checkpoints: a store beside the store, of which every file can be read in parts."""

import contextlib
import time
from pathlib import Path

import pytest

from queueber.db.families import Family
from queueber.db.recovery.opening import check_data_dir
from queueber.db.store.checkpoints import Checkpoints
from queueber.db.store.rocks import RocksStore
from queueber.errors import Unavailable
from tests.support.disks import grow, small_disk
from tests.support.dumps import Dump, dump

END = b"\xff" * 8


def put(store: RocksStore, *keys: bytes, value: bytes = b"value") -> None:
    batch = store.batch()
    for key in keys:
        batch.put(Family.ITEMS, key, value)
    store.write(batch)


def put_in_the_end(store: RocksStore, key: bytes) -> None:
    """RocksDB looks every few seconds whether there is space again."""
    give_up_at = time.monotonic() + 60
    while True:
        try:
            put(store, key)
        except Unavailable:
            assert time.monotonic() < give_up_at
            time.sleep(0.1)
        else:
            return


def entries(found: Dump) -> Dump:
    """Without the note of how far the log was synced, which belongs to one store alone."""
    return {name: [each for each in of if each[0] != b"synced"] for name, of in found.items()}


def keys_in(path: Path) -> list[bytes]:
    with RocksStore(path) as copy:
        return [key for key, _ in copy.walk(Family.ITEMS, b"", END)]


def copied(checkpoints: Checkpoints, name: str, to: Path, *, chunk: int = 1000) -> None:
    """Read all files in parts, as a backup does."""
    to.mkdir()
    for file in checkpoints.files(name):
        parts = [checkpoints.read(name, file.name, at, chunk) for at in range(0, file.size, chunk)]
        data = b"".join(parts)
        assert len(data) == file.size
        (to / file.name).write_bytes(data)


def test_checkpoint_is_a_store_with_all_that_was_written_before_it(folder: Path) -> None:
    with RocksStore(folder / "data") as store:
        put(store, b"a", b"b")
        store.sync()
        put(store, b"c")
        before = entries(dump(store))
        checkpoints = Checkpoints(store.checkpoints_path)

        store.checkpoint(checkpoints.directory("one"))
        put(store, b"d")

        copied(checkpoints, "one", folder / "copy")
        assert entries(dump(store)) != before
    with RocksStore(folder / "copy") as copy:
        assert entries(dump(copy)) == before
        assert copy.torn == ""
        put(copy, b"e")
    assert keys_in(folder / "copy") == [b"a", b"b", b"c", b"e"]


def test_checkpoint_keeps_files_that_the_store_has_replaced(folder: Path) -> None:
    with RocksStore(folder / "data") as store:
        put(store, *[b"%04d" % n for n in range(1000)], value=bytes(100))
        checkpoints = Checkpoints(store.checkpoints_path)
        store.checkpoint(checkpoints.directory("one"))
        batch = store.batch()
        batch.delete_range(Family.ITEMS, b"", END)
        store.write(batch)
        store.checkpoint(checkpoints.directory("two"))
        store.reclaim(Family.ITEMS, b"", END)

        copied(checkpoints, "one", folder / "first")
        copied(checkpoints, "two", folder / "second")

    assert len(keys_in(folder / "first")) == 1000
    assert keys_in(folder / "second") == []


def test_final_files_have_the_same_fingerprint_in_later_checkpoints(folder: Path) -> None:
    with RocksStore(folder / "data") as store:
        put(store, b"a")
        checkpoints = Checkpoints(store.checkpoints_path)
        store.checkpoint(checkpoints.directory("one"))
        put(store, b"b")
        store.checkpoint(checkpoints.directory("two"))

        first = {file.name: file for file in checkpoints.files("one")}
        second = {file.name: file for file in checkpoints.files("two")}

    final = {name for name, file in first.items() if file.is_final}
    assert final
    assert all(name.endswith(".sst") for name in final)
    assert all(second[name] == first[name] for name in final)
    assert len({file.fingerprint for file in second.values() if file.is_final}) == len(
        [file for file in second.values() if file.is_final]
    )
    assert {file.fingerprint for file in first.values() if not file.is_final} == {b""}


def test_stores_that_were_one_make_files_with_other_fingerprints(folder: Path) -> None:
    """Two stores that go on from one backup give new files the same names, and maybe sizes."""
    with RocksStore(folder / "data") as store:
        put(store, b"a")
        checkpoints = Checkpoints(store.checkpoints_path)
        store.checkpoint(checkpoints.directory("one"))
        copied(checkpoints, "one", folder / "copy")
    fingerprints = []
    for name in ("data", "copy"):
        with RocksStore(folder / name) as store:
            put(store, b"b")
            checkpoints = Checkpoints(store.checkpoints_path)
            store.checkpoint(checkpoints.directory("two"))
            fingerprints.append(
                {(file.name, file.size): file.fingerprint for file in checkpoints.files("two")}
            )

    data, copy = fingerprints
    same = [key for key, value in data.items() if value and copy.get(key) == value]
    other = [key for key, value in data.items() if value and copy.get(key, value) != value]
    assert same, "files from before the backup"
    assert other, "files from after it"


def test_directory_with_checkpoints_in_it_is_one_of_ours(folder: Path) -> None:
    (folder / "data" / "checkpoints" / "left").mkdir(parents=True)

    check_data_dir(folder / "data")

    with RocksStore(folder / "data") as store:
        put(store, b"a")
    check_data_dir(folder / "data")
    assert keys_in(folder / "data") == [b"a"]


def test_removed_checkpoint_leaves_the_store_as_it_is(folder: Path) -> None:
    with RocksStore(folder / "data") as store:
        put(store, b"a")
        checkpoints = Checkpoints(store.checkpoints_path)
        assert checkpoints.names() == []
        store.checkpoint(checkpoints.directory("one"))
        assert checkpoints.names() == ["one"]

        checkpoints.remove("one")
        checkpoints.remove("none")

        assert checkpoints.names() == []
        with pytest.raises(Unavailable, match="begin another backup"):
            checkpoints.read("one", "CURRENT", 0, 1)
        with pytest.raises(Unavailable, match="begin another backup"):
            checkpoints.files("one")
    assert keys_in(folder / "data") == [b"a"]


def test_checkpoint_that_cannot_be_made_leaves_nothing(folder: Path) -> None:
    with RocksStore(folder / "data") as store:
        put(store, b"a")
        checkpoints = Checkpoints(store.checkpoints_path)
        store.checkpoints_path.write_text("not a directory")
        with pytest.raises(Unavailable, match="no checkpoint could be made"):
            store.checkpoint(checkpoints.directory("one"))
        store.checkpoints_path.unlink()

        put(store, b"b")
        store.checkpoint(checkpoints.directory("one"))
    assert keys_in(folder / "data") == [b"a", b"b"]


@pytest.mark.slow
def test_checkpoint_on_a_full_disk_is_refused_and_the_store_goes_on(folder: Path) -> None:
    small = folder / "small"
    small.mkdir()
    with small_disk(small, "4m"), RocksStore(small / "data") as store:
        put(store, b"a", value=bytes(100_000))
        store.sync()
        ballast = small / "ballast"
        with contextlib.suppress(OSError), ballast.open("wb", 0) as file:
            while file.write(bytes(4096)):
                pass
        checkpoints = Checkpoints(store.checkpoints_path)

        with pytest.raises(Unavailable, match="the disk of the data directory is full"):
            store.checkpoint(checkpoints.directory("one"))

        assert checkpoints.names() == []
        ballast.unlink()
        grow(small)
        put_in_the_end(store, b"b")
        store.checkpoint(checkpoints.directory("one"))
        copied(checkpoints, "one", folder / "copy", chunk=100_000)
    assert keys_in(folder / "copy") == [b"a", b"b"]
