"""Stores with other families than ours: of another format they are left alone."""

from pathlib import Path

import pytest
import rocksdict

from queueber.db.families import Family
from queueber.db.store.rocks import RocksStore
from queueber.errors import StorageCorrupt


def families_of(path: Path) -> list[str]:
    return sorted(rocksdict.Rdict.list_cf(str(path), rocksdict.Options(raw_mode=True)))


def make_store(path: Path, families: list[str], values: dict[bytes, bytes]) -> None:
    options = rocksdict.Options(raw_mode=True)
    options.create_if_missing(True)
    options.create_missing_column_families(True)
    of_each = {name: rocksdict.Options(raw_mode=True) for name in families}
    store = rocksdict.Rdict(str(path), options, of_each)
    for key, value in values.items():
        store.put(key, value)
    store.close()


def test_store_of_another_format_is_refused_and_gets_no_family(tmp_path: Path) -> None:
    path = tmp_path / "old"
    make_store(path, ["queues", "items"], {b"format": (1).to_bytes(4)})
    before = families_of(path)

    with pytest.raises(StorageCorrupt, match="has format 1, this version reads format 5"):
        RocksStore(path)

    assert families_of(path) == before == ["default", "items", "queues"]


def test_store_that_a_crash_left_without_some_families_is_finished(tmp_path: Path) -> None:
    path = tmp_path / "unfinished"
    make_store(path, ["queues"], {})

    with RocksStore(path) as store:
        assert store.get(Family.DEFAULT, b"format") == (5).to_bytes(4)

    assert families_of(path) == sorted(family.family_name for family in Family)


def test_store_of_our_format_without_one_of_its_families_is_given_it(tmp_path: Path) -> None:
    path = tmp_path / "ours"
    make_store(path, ["queues"], {b"format": (5).to_bytes(4)})

    with RocksStore(path) as store:
        assert store.get(Family.DEFAULT, b"format") == (5).to_bytes(4)
