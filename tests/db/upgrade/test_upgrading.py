"""The upgrade of a data directory: all of it or nothing, and the old store is kept."""

import fcntl
import os
import shutil
from pathlib import Path
from random import Random
from typing import NamedTuple

import pytest

from queueber.db.families import Family
from queueber.db.recovery.opening import ForeignDirectory, check_data_dir, stored_format
from queueber.db.store.contract import Store
from queueber.db.store.format import FORMAT, UPGRADED_FROM
from queueber.db.store.rocks import RocksStore
from queueber.db.upgrade import swap, upgrading
from queueber.db.upgrade.from_4_to_5 import FAMILIES
from queueber.db.upgrade.stores import NewStore, OldStore, Work
from queueber.db.upgrade.upgrading import STEPS, Step, Upgraded, UpgradeRefused, upgrade
from queueber.errors import DataDirLocked, StorageCorrupt
from tests.support.foreign_stores import make_rocksdb
from tests.support.format_4 import NOW_MS, Queue, random_queue, write_store
from tests.support.upgraded import ReadQueue


def sound(store: Store) -> list[str]:
    return []


@pytest.fixture
def queue() -> Queue:
    return random_queue(Random(7), 1, groups=3)


@pytest.fixture
def data(folder: Path, queue: Queue) -> Path:
    write_store(folder / "data", [queue])
    return folder / "data"


def contents(folder: Path) -> dict[str, bytes]:
    """Of every file of a store; `LOCK` is not a part of it."""
    found = [file for file in folder.rglob("*") if file.is_file() and file.name != "LOCK"]
    return {str(file.relative_to(folder)): file.read_bytes() for file in found}


def check_upgraded(data: Path, queue: Queue) -> None:
    assert stored_format(data) == FORMAT.to_bytes(4)
    check_data_dir(data)
    with RocksStore(data) as store:
        assert len(ReadQueue(store, queue).items) == len(queue.items)


def test_there_is_a_step_from_every_format_that_can_be_upgraded() -> None:
    assert list(STEPS) == list(range(UPGRADED_FROM, FORMAT))


def test_upgrade_puts_the_new_store_in_place_and_keeps_the_old_one(
    data: Path, queue: Queue
) -> None:
    (data / "README").write_text("how to restore this")
    before = contents(data)
    del before["README"]

    upgraded = upgrade(data, Work(NOW_MS), sound)

    kept = data / "format-4"
    told = f"the store has format 5 now: queues: 1, items: {len(queue.items)}"
    dropped = [f"load {load.ref.name!r}" for load in queue.loads]
    assert upgraded is not None
    assert upgraded.kept == kept
    assert upgraded.report[-1] == told
    assert [line[: len(name)] for line, name in zip(upgraded.report, dropped, strict=False)] == (
        dropped
    )
    report = "".join(f"{line}\n" for line in upgraded.report).encode()
    assert contents(kept) == {**before, "upgrade-report.txt": report}
    assert {entry.name for entry in data.iterdir() if entry.is_dir()} == {"format-4"}
    assert (data / "README").read_text() == "how to restore this"
    check_upgraded(data, queue)
    # Opening it for writing leaves the kept store alone.
    assert contents(kept) == {**before, "upgrade-report.txt": report}


def test_kept_store_can_be_upgraded_again_elsewhere(data: Path, queue: Queue) -> None:
    upgrade(data, Work(NOW_MS), sound)
    shutil.copytree(data / "format-4", data.with_name("again"))

    assert upgrade(data.with_name("again"), Work(NOW_MS), sound) is not None

    check_upgraded(data.with_name("again"), queue)


def test_store_of_today_is_left_alone(data: Path) -> None:
    upgrade(data, Work(NOW_MS), sound)
    before = contents(data)

    assert upgrade(data, Work(NOW_MS), sound) is None

    assert contents(data) == before


@pytest.mark.parametrize("attempt", [RocksStore, lambda path: RocksStore(path, read_only=True)])
def test_store_of_format_4_is_refused_with_what_to_do(
    data: Path, attempt: type[RocksStore]
) -> None:
    before = contents(data)

    with pytest.raises(StorageCorrupt) as refused:
        attempt(data)

    assert str(refused.value) == (
        "the store has format 4, this version reads format 5; run 'queueber upgrade' on it, with "
        "the same --data-dir"
    )
    assert contents(data) == before


@pytest.mark.parametrize("number", [1, 2, 3, 6])
def test_store_of_a_format_without_a_step_is_refused(folder: Path, number: int) -> None:
    make_rocksdb(folder / "data", ["queues", "items"], {b"format": number.to_bytes(4)})

    with pytest.raises(StorageCorrupt, match="; use the version of Queueber that wrote it"):
        upgrade(folder / "data", Work(NOW_MS), sound)


def test_store_without_a_number_is_refused(folder: Path) -> None:
    make_rocksdb(folder / "data", ["queues", "items"], {})

    with pytest.raises(UpgradeRefused, match="has no format number"):
        upgrade(folder / "data", Work(NOW_MS), sound)


def test_directory_without_a_store_stays_as_it_is(folder: Path) -> None:
    (folder / "empty").mkdir()
    (folder / "docs").mkdir()
    (folder / "docs" / "guide.md").write_text("# Guide")

    for name in ("none", "empty"):
        with pytest.raises(UpgradeRefused, match=r"there is no store in .*; nothing was created"):
            upgrade(folder / name, Work(NOW_MS), sound)
    with pytest.raises(ForeignDirectory):
        upgrade(folder / "docs", Work(NOW_MS), sound)

    assert sorted(str(each.relative_to(folder)) for each in folder.rglob("*")) == [
        "docs",
        "docs/guide.md",
        "empty",
    ]


class Lock(NamedTuple):
    child: int
    done: int


def hold_lock(data: Path) -> Lock:
    """Another process holds the lock, as a server does; this one's own would not conflict."""
    ready, told = os.pipe()
    waits, done = os.pipe()
    child = os.fork()
    if child == 0:
        lock = (data / "LOCK").open("ab")
        fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.write(told, b"1")
        os.close(done)
        os.read(waits, 1)
        os._exit(0)
    os.close(waits)
    os.read(ready, 1)
    os.close(ready)
    os.close(told)
    return Lock(child, done)


def test_store_in_use_is_refused(data: Path, queue: Queue) -> None:
    before = contents(data)
    lock = hold_lock(data)

    with pytest.raises(DataDirLocked, match="is in use by a running server; stop it first"):
        upgrade(data, Work(NOW_MS), sound)

    os.close(lock.done)
    os.waitpid(lock.child, 0)
    assert contents(data) == before
    assert upgrade(data, Work(NOW_MS), sound) is not None


def test_new_store_that_breaks_a_rule_is_not_put_in_place(data: Path) -> None:
    before = contents(data)

    with pytest.raises(UpgradeRefused) as refused:
        upgrade(data, Work(NOW_MS), lambda store: ["I1 a", "I2 b", "I3 c", "I4 d"])

    assert str(refused.value) == (
        "the upgraded store would break 4 rules (I1 a; I2 b; I3 c); nothing was changed: verify "
        "the store with the version of Queueber that wrote it (format 4); if it is sound, please "
        "report this bug"
    )
    assert contents(data) == before


def test_store_that_an_earlier_upgrade_kept_is_not_overwritten(data: Path) -> None:
    (data / "format-4").mkdir()
    before = contents(data)

    with pytest.raises(UpgradeRefused, match=r"format-4 exists.*: move or delete it first"):
        upgrade(data, Work(NOW_MS), sound)

    assert contents(data) == before


def test_disk_without_space_for_a_second_store_is_refused(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = shutil.disk_usage(data)._replace(free=1000)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)

    with pytest.raises(UpgradeRefused, match="has 1,000 bytes left, and the new store may need"):
        upgrade(data, Work(NOW_MS), sound)


def test_upgrade_that_was_killed_before_the_swap_starts_over(data: Path, queue: Queue) -> None:
    half = data / "upgrade-unfinished" / "5"
    with NewStore(half, FAMILIES) as new:
        new.put("items", b"left by a kill", b"junk")
        new.finish()

    with pytest.raises(StorageCorrupt, match="run 'queueber upgrade'"):
        RocksStore(data)
    assert upgrade(data, Work(NOW_MS), sound) is not None

    check_upgraded(data, queue)
    with RocksStore(data) as store:
        assert store.get(Family.ITEMS, b"left by a kill") is None


class Killed(BaseException):
    pass


def test_upgrade_that_was_killed_before_any_rename_is_finished_with_the_same_report(
    folder: Path, data: Path, queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    renames, done = 0, False
    while not done:
        here = folder / f"killed-{renames}"
        shutil.copytree(data, here)
        left = renames

        def move(old: Path, new: Path) -> None:
            nonlocal left
            if not left:
                raise Killed
            left -= 1
            old.rename(new)

        work = Work(NOW_MS)
        with monkeypatch.context() as patched:
            patched.setattr(swap, "_move", move)
            try:
                upgrade(here, work, sound)
                done = True
            except Killed:
                if renames:
                    with pytest.raises(swap.UpgradeInterrupted):
                        RocksStore(here)
        if not done:
            assert upgrade(here, Work(NOW_MS), sound) == Upgraded(work.notes, here / "format-4")
        assert not (here / swap.UNFINISHED).exists()
        check_upgraded(here, queue)
        shutil.rmtree(here)
        renames += 1
    assert renames > 20


def test_steps_are_taken_one_after_the_other(
    data: Path, queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A step in between writes a store that only the next step reads."""
    seen: list[tuple[int, list[str]]] = []

    def copy(old: OldStore, new: NewStore, work: Work) -> None:
        seen.append((old.number, sorted(each.name for each in (data / swap.UNFINISHED).iterdir())))
        for family in FAMILIES:
            for key, value in old.walk(family):
                new.put(family, key, value)

    monkeypatch.setattr(upgrading, "FORMAT", 7)
    monkeypatch.setattr(
        upgrading, "STEPS", {**STEPS, 5: Step(FAMILIES, copy), 6: Step(FAMILIES, copy)}
    )

    assert upgrade(data, Work(NOW_MS), sound) is not None

    assert seen == [(5, ["5", "6"]), (6, ["6", "7"])]
    check_upgraded(data, queue)
