"""The swap of two stores: it can be killed before every rename, and ends in the same way."""

from pathlib import Path

import pytest

from queueber.db.recovery.opening import check_data_dir
from queueber.db.store.rocks import RocksStore
from queueber.db.upgrade import swap
from queueber.db.upgrade.swap import (
    REPORT,
    UpgradeInterrupted,
    begin_swap,
    finish_swap,
    is_interrupted,
    kept_folder,
    refuse_interrupted,
)

OLD = ["000009.sst", "000010.log", "CURRENT", "MANIFEST-000005", "SYNCED", "loads/a/token"]
NEW = ["000009.sst", "000012.log", "CURRENT", "LOCK", "MANIFEST-000030", "SYNCED"]
OTHERS = ["LOCK", "README", "lost+found/1", "format-3/CURRENT"]
RENAMES = 15
"""One more than there are: the new store, 6 old files, their folder, the report, 5 new files."""


class Killed(Exception):
    pass


def write(folder: Path, names: list[str], text: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A data directory whose upgraded store is ready."""
    write(tmp_path, OLD, "old")
    write(tmp_path, OTHERS, "other")
    write(tmp_path / "upgrade-unfinished" / "5", NEW, "new")
    (tmp_path / "upgrade-unfinished" / "5" / REPORT).write_text("one\ntwo\n")
    return tmp_path


def files(folder: Path) -> dict[str, str]:
    found = [file for file in folder.rglob("*") if file.is_file()]
    return {str(file.relative_to(folder)): file.read_text() for file in found}


SWAPPED = (
    {f"format-4/{name}": "old" for name in OLD}
    | dict.fromkeys(NEW, "new")
    | dict.fromkeys(OTHERS, "other")
    | {f"format-4/{REPORT}": "one\ntwo\n"}
)


def kill_after(monkeypatch: pytest.MonkeyPatch, renames: int) -> None:
    left = renames

    def move(old: Path, new: Path) -> None:
        nonlocal left
        if not left:
            raise Killed
        left -= 1
        old.rename(new)

    monkeypatch.setattr(swap, "_move", move)


def test_swap_keeps_the_old_store_and_what_is_of_others(data: Path) -> None:
    begin_swap(data, data / "upgrade-unfinished" / "5", 4)
    assert is_interrupted(data)

    assert finish_swap(data) == (data / "format-4", ["one", "two"])

    assert kept_folder(data, 4) == data / "format-4"
    assert files(data) == SWAPPED
    assert not is_interrupted(data)
    assert finish_swap(data) is None


@pytest.mark.parametrize("renames", range(RENAMES))
def test_swap_that_was_killed_after_some_renames_is_finished(
    data: Path, renames: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = files(data)
    with monkeypatch.context() as patched:
        kill_after(patched, renames)
        try:
            begin_swap(data, data / "upgrade-unfinished" / "5", 4)
            finish_swap(data)
        except Killed:
            if renames == 0:
                assert files(data) == before
                assert not is_interrupted(data)
                return
            assert is_interrupted(data)
            # Nothing is lost, wherever it is.
            assert sorted(files(data).values()) == sorted(before.values())

    finish_swap(data)

    assert files(data) == SWAPPED


@pytest.mark.parametrize("second", range(RENAMES))
@pytest.mark.parametrize("first", [1, 4, 7, 10])
def test_swap_that_was_killed_twice_is_finished(
    data: Path, first: int, second: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for renames in (first, second):
        with monkeypatch.context() as patched:
            kill_after(patched, renames)
            try:
                if not is_interrupted(data) and renames == first:
                    begin_swap(data, data / "upgrade-unfinished" / "5", 4)
                finish_swap(data)
            except Killed:
                pass

    finish_swap(data)

    assert files(data) == SWAPPED


@pytest.mark.parametrize("renames", range(1, RENAMES - 1))
def test_half_swapped_store_is_refused_and_no_new_one_is_made(
    data: Path, renames: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    kill_after(monkeypatch, renames)
    try:
        begin_swap(data, data / "upgrade-unfinished" / "5", 4)
        finish_swap(data)
    except Killed:
        pass
    else:
        return
    before = files(data)

    for attempt in (
        lambda: check_data_dir(data),
        lambda: RocksStore(data),
        lambda: RocksStore(data, read_only=True),
        lambda: refuse_interrupted(data),
    ):
        with pytest.raises(UpgradeInterrupted) as refused:
            attempt()
        assert str(refused.value) == (
            f"an upgrade of the store in {data} was interrupted; run 'queueber upgrade' again: it "
            "goes on from there, and nothing is lost"
        )
    assert files(data) == before


def test_directory_that_does_not_exist_is_not_interrupted(tmp_path: Path) -> None:
    assert not is_interrupted(tmp_path / "none")
    assert finish_swap(tmp_path / "none") is None
