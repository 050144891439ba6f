"""The store of the original Queueber: every item is found once, and nothing is changed."""

from pathlib import Path

import pytest

from queueber.db.original import OriginalCounts, OriginalItem, OriginalStore
from queueber.errors import InvalidArgument, StorageCorrupt
from tests.support.foreign_stores import ORIGINAL, make_rocksdb, state_of
from tests.support.original_store import Original


def item_id(number: int) -> bytes:
    return number.to_bytes(16)


def files_of(path: Path) -> dict[str, tuple[int, int, bytes]]:
    return {name: state for name, state in state_of(path).items() if name != "."}


def test_items_come_in_the_order_of_their_work(tmp_path: Path) -> None:
    Original(
        waiting={
            item_id(1): (b"late", 2_000_000_000),
            item_id(2): (b"early", 1_000),
            item_id(3): (b"", 5_000),
        },
        in_progress={item_id(9): b"polled", item_id(4): b"polled, too"},
        unindexed={item_id(7): b"lost"},
    ).write(tmp_path / "old")
    before = files_of(tmp_path / "old")

    with OriginalStore(tmp_path / "old") as store:
        assert store.count() == OriginalCounts(waiting=4, in_progress=2)
        assert list(store.items()) == [
            OriginalItem(item_id(4), b"polled, too", 0),
            OriginalItem(item_id(9), b"polled", 0),
            OriginalItem(item_id(2), b"early", 1_000),
            OriginalItem(item_id(3), b"", 5_000),
            OriginalItem(item_id(1), b"late", 2_000_000_000),
            OriginalItem(item_id(7), b"lost", 0),
        ]

    assert files_of(tmp_path / "old") == before


def test_empty_store_has_no_items(tmp_path: Path) -> None:
    Original().write(tmp_path / "old")

    with OriginalStore(tmp_path / "old") as store:
        assert (store.count(), list(store.items())) == (OriginalCounts(0, 0), [])


def test_other_directories_are_refused(tmp_path: Path) -> None:
    make_rocksdb(tmp_path / "other", ["something"], {b"a": b"b"})
    (tmp_path / "empty").mkdir()

    for name in ("other", "empty", "none"):
        with pytest.raises(InvalidArgument, match="has no store of the original Queueber"):
            OriginalStore(tmp_path / name)


def test_damaged_item_is_named(tmp_path: Path) -> None:
    import rocksdict

    Original().write(tmp_path / "old")
    options = {name: rocksdict.Options(raw_mode=True) for name in ORIGINAL}
    store = rocksdict.Rdict(str(tmp_path / "old"), rocksdict.Options(raw_mode=True), options)
    family = store.get_column_family("in_progress")
    family[b"in_progress/" + item_id(5)] = b"not a message"
    family.close()
    store.close()

    with (
        OriginalStore(tmp_path / "old") as opened,
        pytest.raises(StorageCorrupt, match=f"item {item_id(5).hex()} of the store in"),
    ):
        list(opened.items())
