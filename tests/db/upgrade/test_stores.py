"""The stores of an upgrade step: the old one is only read, the new one is whole when finished."""

from pathlib import Path
from random import Random

import pytest

from queueber.db.upgrade.stores import DamagedStore, NewStore, OldStore
from queueber.errors import StorageFailed
from tests.support.disks import small_disk
from tests.support.format_4 import put_entries

FAMILIES = ("default", "items", "other")


def test_old_store_is_walked_in_order_and_by_prefix(folder: Path) -> None:
    keys = [b"a1", b"a2", b"b", b"\xff"]
    put_entries(folder / "old", [("items", key, key * 2) for key in reversed(keys)])

    with OldStore(folder / "old", 4) as old:
        assert list(old.walk("items")) == [(key, key * 2) for key in keys]
        assert [key for key, _ in old.walk("items", b"a")] == [b"a1", b"a2"]
        assert list(old.walk("items", b"c")) == []
        assert (old.get("items", b"b"), old.get("items", b"c")) == (b"bb", None)
        assert old.torn == ""


def test_old_store_is_not_changed_by_reading(folder: Path) -> None:
    """rocksdict writes its one file anew whenever it opens a store, with the same bytes."""
    put_entries(folder / "old", [("items", b"a", b"1")])
    before = {file.name: file.read_bytes() for file in (folder / "old").iterdir()}

    with OldStore(folder / "old", 4) as old:
        assert list(old.walk("items")) == [(b"a", b"1")]

    assert {file.name: file.read_bytes() for file in (folder / "old").iterdir()} == before


def test_old_store_with_a_damaged_block_is_refused(folder: Path) -> None:
    with NewStore(folder / "old", FAMILIES) as made:
        made.put("items", b"a", bytes(range(256)) * 64)
        made.finish()
    for file in (folder / "old").glob("*.sst"):
        held = bytearray(file.read_bytes())
        held[20] ^= 1
        file.write_bytes(held)

    with OldStore(folder / "old", 4) as old, pytest.raises(DamagedStore) as refused:
        list(old.walk("items"))

    assert "Corruption" in str(refused.value)
    assert "use the version of Queueber that wrote the store (format 4)" in str(refused.value)


def test_old_store_that_has_lost_the_end_of_its_log_is_refused(folder: Path) -> None:
    put_entries(folder / "old", [("items", b"a", b"1")])
    for file in (folder / "old").glob("*.log"):
        file.write_bytes(b"")

    with pytest.raises(DamagedStore, match="the end of its log is missing"):
        OldStore(folder / "old", 4)


def test_old_store_with_a_torn_log_says_so(folder: Path) -> None:
    put_entries(folder / "old", [("items", b"a", b"1")])
    (log,) = (folder / "old").glob("*.log")
    (folder / "old" / "SYNCED").unlink()
    log.write_bytes(log.read_bytes() + b"torn" * 8)

    with OldStore(folder / "old", 4) as old:
        assert list(old.walk("items")) == [(b"a", b"1")]
        assert "nothing behind it was synced" in old.torn


def test_new_store_has_everything_when_it_is_finished(folder: Path) -> None:
    entries = [(n.to_bytes(4), bytes(1000)) for n in range(3000)]
    with NewStore(folder / "new", FAMILIES) as new:
        for key, value in entries:
            new.put("items", key, value)
        new.put("other", b"a", b"1")
        new.finish()
    assert not any(file.stat().st_size for file in (folder / "new").glob("*.log"))

    with OldStore(folder / "new", 5) as written:
        assert list(written.walk("items")) == entries
        assert list(written.walk("other")) == [(b"a", b"1")]


def test_cursor_finds_the_first_entry_from_a_key_on(folder: Path) -> None:
    with NewStore(folder / "new", FAMILIES) as new:
        for key in (b"b", b"d"):
            new.put("items", key, key * 2)
        new.write()
        cursor = new.cursor("items")

        assert cursor.first_from(b"a") == (b"b", b"bb")
        assert cursor.first_from(b"b") == (b"b", b"bb")
        assert cursor.first_from(b"c") == (b"d", b"dd")
        assert cursor.first_from(b"e") is None


def test_full_disk_says_that_nothing_was_changed(folder: Path) -> None:
    small = folder / "small"
    small.mkdir()
    with small_disk(small, "4m"), NewStore(small / "new", FAMILIES) as new:
        for n in range(16):
            new.put("items", bytes([n]), Random(n).randbytes(1 << 20))

        with pytest.raises(StorageFailed) as failed:
            new.finish()

    assert str(failed.value) == "the disk is full; nothing was changed: make room, and try again"
