"""A directory that is not ours is refused, and no byte of it changes."""

from pathlib import Path

import pytest

from queueber.db.families import Family
from queueber.db.recovery.opening import ForeignDirectory, check_data_dir
from queueber.db.recovery.wal import write_synced
from queueber.db.store.rocks import RocksStore
from tests.support.foreign_stores import ORIGINAL, make_rocksdb, state_of


def refused(path: Path) -> str:
    before = state_of(path)
    with pytest.raises(ForeignDirectory) as raised:
        check_data_dir(path)
    assert state_of(path) == before
    return str(raised.value)


def test_missing_directory_is_accepted_and_not_made(tmp_path: Path) -> None:
    check_data_dir(tmp_path / "new")

    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    "names",
    [[], ["lost+found"], ["LOCK", "LOG", "rocksdict-config.json"], ["loads", "000004.log", "LOG"]],
    ids=["empty", "a new file system", "a start that was killed", "the same, later"],
)
def test_directory_without_anything_of_others_is_accepted(tmp_path: Path, names: list[str]) -> None:
    for name in names:
        (tmp_path / name).touch()

    check_data_dir(tmp_path)

    assert sorted(file.name for file in tmp_path.iterdir()) == sorted(names)


def test_directory_of_documents_is_refused_with_a_few_names_and_what_to_do(tmp_path: Path) -> None:
    for name in ("b.md", "a.md", "d.md", "c.md", "LOG"):
        (tmp_path / name).write_text(name)

    assert refused(tmp_path) == (
        f"{tmp_path} is neither empty nor a data directory of Queueber: it holds 'a.md', 'b.md', "
        "'c.md' and 1 more; nothing was changed; choose an empty or new directory with --data-dir"
    )


@pytest.mark.parametrize("name", [".git", "app.log", "loads.txt", "repair-unfinished"])
def test_directory_with_one_thing_of_others_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir()

    assert f"it holds '{name}'; nothing" in refused(tmp_path)


def test_store_of_ours_is_accepted_with_whatever_else_is_in_it(tmp_path: Path) -> None:
    RocksStore(tmp_path / "data").close()
    (tmp_path / "data" / "loads").mkdir()
    (tmp_path / "data" / "README").write_text("how to restore this")
    before = state_of(tmp_path)

    check_data_dir(tmp_path / "data")

    assert state_of(tmp_path) == before


def test_store_of_ours_that_is_open_is_accepted(tmp_path: Path) -> None:
    """That it is in use is for the opening to say."""
    with RocksStore(tmp_path / "data"):
        check_data_dir(tmp_path / "data")


@pytest.mark.parametrize("lost", ["CURRENT", "MANIFEST"])
def test_store_of_ours_that_is_damaged_is_accepted(tmp_path: Path, lost: str) -> None:
    """What is wrong with it is for the opening to say."""
    with RocksStore(tmp_path / "data") as store:
        store.sync()
    write_synced(tmp_path / "data", 1)
    for file in (tmp_path / "data").glob(f"{lost}*"):
        file.unlink()

    check_data_dir(tmp_path / "data")


def test_store_of_ours_of_another_format_is_accepted(tmp_path: Path) -> None:
    """The opening names both formats."""
    make_rocksdb(tmp_path / "old", ["queues", "items"], {b"format": (1).to_bytes(4)})

    check_data_dir(tmp_path / "old")


@pytest.mark.parametrize("families", [[], ["leases"]])
def test_first_start_that_was_killed_before_its_families_were_made_is_accepted(
    tmp_path: Path, families: list[str]
) -> None:
    make_rocksdb(tmp_path / "data", families, {})

    check_data_dir(tmp_path / "data")
    with RocksStore(tmp_path / "data") as store:
        assert store.get(Family.DEFAULT, b"format") == (5).to_bytes(4)


@pytest.mark.parametrize("entries", [{}, {b"available/1": b"x"}], ids=["empty", "with items"])
def test_store_of_the_original_is_refused_as_what_it_is(
    tmp_path: Path, entries: dict[bytes, bytes]
) -> None:
    make_rocksdb(tmp_path / "data", ORIGINAL, entries)

    assert refused(tmp_path / "data") == (
        f"{tmp_path}/data holds a RocksDB store of another program, perhaps of the original "
        "Queueber (column families 'available', 'default', 'in_progress' and 3 more); this version "
        "cannot read it; nothing was changed; choose an empty or new directory with --data-dir"
    )


def test_store_of_another_program_with_one_family_and_data_is_refused(tmp_path: Path) -> None:
    """As the first versions of the original had it."""
    make_rocksdb(tmp_path / "data", [], {b"available/1": b"x"})

    assert "(column families 'default'); this version cannot read it" in refused(tmp_path / "data")


def test_store_of_ours_whose_manifest_lost_our_families_passes(tmp_path: Path) -> None:
    """`repair` is what it needs, and `repair` asks here first."""
    make_rocksdb(tmp_path / "data", ["default"], {b"x": b"y"})
    (tmp_path / "data" / "SYNCED").write_bytes(b"1")

    check_data_dir(tmp_path / "data")
