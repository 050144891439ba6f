"""Snapshots of a store: chosen ranges and families as they were, whatever is written later."""

from pathlib import Path

import pytest

from queueber.db.families import Family
from queueber.db.store.contract import Snapshot, Store
from queueber.db.store.rocks import RocksStore

STOP = b"\xff"


def put(store: Store, family: Family, *keys: bytes, value: bytes = b"old") -> None:
    batch = store.batch()
    batch.put_many(family, [(key, value) for key in keys])
    store.write(batch)


def taken(store: Store) -> Snapshot:
    return store.snapshot([(Family.DEAD, STOP)], [Family.ITEMS])


def change(store: Store, how: str) -> None:
    batch = store.batch()
    for family in (Family.DEAD, Family.ITEMS):
        if how == "deleted":
            batch.delete_many(family, [b"a", b"b"])
        elif how == "deleted as a range":
            batch.delete_range(family, b"a", STOP)
        else:
            batch.put_many(family, [(b"a", b"new"), (b"aa", b"new"), (b"b", b"new")])
    store.write(batch)


@pytest.mark.parametrize("how", ["deleted", "deleted as a range", "written"])
@pytest.mark.parametrize("is_compacted", [False, True], ids=["in memory", "compacted"])
def test_snapshot_shows_its_moment_whatever_is_done_later(
    store: Store, how: str, is_compacted: bool
) -> None:
    for family in (Family.DEAD, Family.ITEMS):
        put(store, family, b"a", b"b")
    snapshot = taken(store)

    change(store, how)
    if is_compacted:
        for family in (Family.DEAD, Family.ITEMS):
            store.reclaim(family, b"", STOP)

    assert snapshot.scan(Family.DEAD, b"", STOP, 9) == [(b"a", b"old"), (b"b", b"old")]
    assert list(snapshot.walk(Family.DEAD, b"", STOP)) == [(b"a", b"old"), (b"b", b"old")]
    assert snapshot.get_many(Family.ITEMS, [b"a", b"aa", b"b"]) == [b"old", None, b"old"]
    assert store.get(Family.ITEMS, b"a") == (b"new" if how == "written" else None)


def test_snapshot_scans_from_any_key_again_and_again(store: Store) -> None:
    put(store, Family.DEAD, b"a", b"b", b"c", STOP + b"d")
    snapshot = taken(store)

    def keys(start: bytes, limit: int) -> list[bytes]:
        return [key for key, _ in snapshot.scan(Family.DEAD, start, STOP, limit)]

    assert keys(b"", 2) == [b"a", b"b"]
    assert keys(b"b", 9) == [b"b", b"c"]
    assert keys(b"a\0", 1) == [b"b"]
    assert keys(b"d", 9) == []
    assert keys(b"a", 9) == [b"a", b"b", b"c"]


def test_store_that_is_closed_ends_its_snapshots_and_can_be_opened_again(tmp_path: Path) -> None:
    """A snapshot that is left keeps the lock on the directory."""
    with RocksStore(tmp_path / "data") as store:
        put(store, Family.DEAD, b"a")
        snapshot = taken(store)

    with pytest.raises(KeyError):
        snapshot.scan(Family.DEAD, b"", STOP, 1)
    with RocksStore(tmp_path / "data") as again:
        assert again.get(Family.DEAD, b"a") == b"old"
