"""The stage: files of loads beside the store, written by offset, checked, made durable, removed."""

import contextlib
import errno
import itertools
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
import rocksdict

from queueber.db.bulk.staged_files import SstWriter, Stage
from queueber.db.records.loads import LoadRecord, part_directory
from queueber.errors import Aborted, InvalidArgument, Unavailable
from queueber.limits import LOAD_FILE_BYTES_MAX
from queueber.model import LoadRef, PartRef, StagedFile
from tests.support.folders import quick_folder, remove_folder
from tests.support.service_loads import files_of

PART = PartRef(3, "first")
NAME = "a.sst"


@pytest.fixture
def path() -> Iterator[Path]:
    folder = quick_folder()
    (folder / "data").mkdir()
    yield folder / "data" / "loads"
    remove_folder(folder)


@pytest.fixture
def stage(path: Path) -> Stage:
    return Stage(path)


@pytest.fixture
def load() -> LoadRecord:
    return LoadRecord(
        ref=LoadRef("load"),
        batch=0,
        started_at_ms=1,
        seen_at_ms=1,
        timeout_ms=1,
        forget_at_ms=2,
        id_head=b"123456789",
        dedup_window_ms=0,
        token=b"0123456789abcdef",
    )


def file_in(path: Path, load: LoadRecord, name: str = NAME) -> Path:
    return path / load.directory / part_directory(PART) / name


def build(folder: Path, count: int = 3) -> tuple[StagedFile, bytes]:
    writer = SstWriter(folder / NAME, "items")
    writer.put_many([b"key-%d" % n for n in range(count)], [b"value"] * count)
    file = writer.finish()
    return file, (folder / NAME).read_bytes()


def no_room(*arguments: object, **options: object) -> int:
    raise OSError(errno.ENOSPC, "No space left on device")


# --- directories ----------------------------------------------------------------------------------


def test_directory_has_a_token_that_proves_who_can_read_it(
    stage: Stage, path: Path, load: LoadRecord
) -> None:
    stage.prepare(load)
    stage.prepare(load)

    assert stage.directory(load) == path.absolute() / b"123456789".hex()
    assert files_of(path) == {f"{load.directory}/token": load.token}


def test_token_that_was_cut_short_is_written_again(
    stage: Stage, path: Path, load: LoadRecord
) -> None:
    stage.prepare(load)
    (path / load.directory / "token").write_bytes(b"012")

    stage.prepare(load)

    assert files_of(path) == {f"{load.directory}/token": load.token}


def test_directories_of_which_nothing_is_known_are_told(
    stage: Stage, path: Path, load: LoadRecord
) -> None:
    assert stage.others([]) == []
    stage.prepare(load)
    (path / "b").mkdir()
    (path / "a").mkdir()

    assert stage.others({load.directory}) == ["a", "b"]


def test_directory_is_removed_with_all_that_is_in_it_and_may_be_gone_already(
    stage: Stage, path: Path, load: LoadRecord
) -> None:
    stage.prepare(load)
    stage.write(load, PART, NAME, 0, b"x")

    stage.remove(load.directory)
    stage.remove(load.directory)

    assert list(path.iterdir()) == []


def test_task_that_goes_on_writing_does_not_keep_a_directory(
    stage: Stage, path: Path, load: LoadRecord
) -> None:
    """One whose load was aborted finds out when it makes its next file."""
    stage.write(load, PART, NAME, 0, b"x")
    numbers = itertools.count()

    def write_on() -> None:
        with contextlib.suppress(FileNotFoundError):
            while True:
                file_in(path, load, str(next(numbers))).touch(exist_ok=False)

    task = threading.Thread(target=write_on)
    task.start()
    while next(numbers) < 100:
        pass
    stage.remove(load.directory)
    task.join()

    assert list(path.iterdir()) == []


# --- bytes ----------------------------------------------------------------------------------------


def test_bytes_come_in_any_order_and_twice(stage: Stage, path: Path, load: LoadRecord) -> None:
    for offset, data in ((3, b"def"), (0, b"abc"), (3, b"def"), (6, b"")):
        stage.write(load, PART, NAME, offset, data)

    assert file_in(path, load).read_bytes() == b"abcdef"


def test_attempts_of_a_partition_do_not_see_each_other(
    stage: Stage, path: Path, load: LoadRecord
) -> None:
    stage.write(load, PART, NAME, 0, b"first")
    stage.write(load, PartRef(3, "second"), NAME, 0, b"second")

    assert sorted(files_of(path).values()) == [b"first", b"second"]


def test_file_beyond_the_limit_is_refused(stage: Stage, path: Path, load: LoadRecord) -> None:
    with pytest.raises(InvalidArgument, match=f"offset: 'a.sst' .*{LOAD_FILE_BYTES_MAX + 1} bytes"):
        stage.write(load, PART, NAME, LOAD_FILE_BYTES_MAX - 1, b"xx")

    assert not path.exists()


def test_write_that_takes_only_a_part_goes_on(
    stage: Stage, path: Path, load: LoadRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = os.pwrite
    monkeypatch.setattr(os, "pwrite", lambda fd, data, at: write(fd, data[:2], at))

    stage.write(load, PART, NAME, 1, b"abcde")

    assert file_in(path, load).read_bytes() == b"\0abcde"


@pytest.mark.parametrize("function", ["pwrite", "mkdir"])
def test_full_disk_is_told_as_the_store_tells_it(
    stage: Stage, load: LoadRecord, monkeypatch: pytest.MonkeyPatch, function: str
) -> None:
    with monkeypatch.context() as fault:
        fault.setattr(os, function, no_room)

        with pytest.raises(Unavailable, match="the disk of the data directory is full; make room"):
            stage.write(load, PART, NAME, 0, b"x")

    stage.write(load, PART, NAME, 0, b"x")


def test_disk_that_does_not_let_us_is_told_with_its_own_words(
    stage: Stage, path: Path, load: LoadRecord
) -> None:
    path.write_bytes(b"in the way")

    with pytest.raises(Unavailable, match=r"cannot be read or written \(.*\); look at the server"):
        stage.prepare(load)


def test_bytes_of_a_checked_part_must_be_those_that_are_there(
    stage: Stage, path: Path, load: LoadRecord
) -> None:
    stage.write(load, PART, NAME, 0, b"abcdef")

    stage.check_same(load, PART, NAME, 2, b"cd")
    for name, offset, data in ((NAME, 2, b"xx"), (NAME, 5, b"fg"), ("b.sst", 0, b"a")):
        with pytest.raises(Aborted, match="attempt 'first' at partition 3 is finished"):
            stage.check_same(load, PART, name, offset, data)

    assert file_in(path, load).read_bytes() == b"abcdef"


# --- checks ---------------------------------------------------------------------------------------


def test_files_are_held_against_what_is_said_of_them(
    stage: Stage, path: Path, load: LoadRecord, tmp_path: Path
) -> None:
    file, held = build(tmp_path)
    stage.write(load, PART, NAME, 0, held)

    stage.check(load, PART, [file])
    stage.check(load, PART, [file])
    stage.write(load, PART, NAME, len(held), b"more")
    with pytest.raises(InvalidArgument, match=f"has {len(held) + 4} bytes, not {len(held)}"):
        stage.check(load, PART, [file])

    assert list(files_of(path)) == [f"{load.directory}/{part_directory(PART)}/{NAME}"]


def test_checked_files_and_every_directory_above_them_are_synced(
    stage: Stage,
    path: Path,
    load: LoadRecord,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    file, held = build(tmp_path)
    stage.write(load, PART, NAME, 0, held)
    synced: list[str] = []
    monkeypatch.setattr(os, "fsync", lambda fd: synced.append(os.readlink(f"/proc/self/fd/{fd}")))

    stage.check(load, PART, [file])

    part = path.resolve() / load.directory / part_directory(PART)
    expected = [part / NAME, part, part.parent, part.parent.parent, part.parent.parent.parent]
    assert synced == [str(each) for each in expected]


@pytest.mark.parametrize(("module", "name"), [(rocksdict, "Rdict"), (os, "link")])
def test_directory_that_vanishes_under_the_check_is_no_crash_and_stays_away(
    stage: Stage,
    path: Path,
    load: LoadRecord,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    module: ModuleType,
    name: str,
) -> None:
    file, held = build(tmp_path)
    stage.write(load, PART, NAME, 0, held)
    call = getattr(module, name)

    def vanish(*arguments: object) -> object:
        stage.remove(load.directory)
        return call(*arguments)

    monkeypatch.setattr(module, name, vanish)

    with pytest.raises(Unavailable, match="cannot be read or written"):
        stage.check(load, PART, [file])
    assert list(path.iterdir()) == []
