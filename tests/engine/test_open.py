"""Opening after a crash in any moment of a commit: untouched, or committed as a whole."""

import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from queueber.db.families import Family
from queueber.db.records.loads import LoadedRecord, LoadRecord, part_directory
from queueber.db.store.contract import Store
from queueber.db.store.rocks import RocksStore
from queueber.engine.integrity.check_store import check_store
from queueber.engine.kernel.transaction import Step, Steps
from queueber.engine.open import open_engine
from queueber.errors import StorageCorrupt
from queueber.ids import IdSource
from queueber.model import NewItems, PartRef, Rows
from tests.engine.load_cases import (
    RICH,
    expected_outcome,
    outcome,
    polled_later,
    prepare,
    stage_all,
)
from tests.support.load_rig import LoadRig
from tests.support.operations import find_committed, loads_under_way

CRASHES: dict[str, Callable[[LoadRig], None]] = {
    "closed": LoadRig.reopen,
    "killed": LoadRig.crash,
    "power lost": LoadRig.lose_power,
}
EXPECTED, CONTENTS = expected_outcome(RICH)


Staged = tuple[LoadRig, LoadRecord, list[PartRef]]


class Crash(Exception):
    """The server is gone."""


def staged_rig() -> Staged:
    rig = LoadRig()
    load = prepare(rig, RICH)
    refs = stage_all(rig, RICH, load)
    rig.sync()
    return rig, load, refs


@pytest.fixture
def staged() -> Iterator[Staged]:
    made = staged_rig()
    yield made
    made[0].close()


def run_steps(rig: LoadRig, steps: Steps[LoadedRecord], count: int) -> list[Step]:
    """Up to so many steps, each with the sync that it asks for."""
    done: list[Step] = []
    for step in steps:
        done.append(step)
        if step is Step.SYNC:
            rig.sync()
        if len(done) == count:
            break
    return done


def count_steps() -> int:
    rig, load, refs = staged_rig()
    steps = run_steps(rig, rig.commit_steps(load, *refs), 1000)
    rig.close()
    return len(steps)


def check_whole(rig: LoadRig, load: LoadRecord, refs: Sequence[PartRef]) -> None:
    """It was committed, or is so now, and the queue goes on."""
    assert check_store(rig.store) == []
    loaded = rig.commit(load, *refs)
    assert (loaded.rows, loaded.duplicates) == (5, 3)
    assert outcome(rig) == EXPECTED
    rig.assert_sound()
    assert polled_later(rig) == CONTENTS
    assert rig.begin("next").id_head > load.id_head
    rig.assert_sound()


STEPS = count_steps()


@pytest.mark.parametrize("crash", CRASHES)
@pytest.mark.parametrize("done", range(STEPS + 2))
def test_crash_after_any_step_leaves_the_load_untouched_or_committed(
    staged: Staged, done: int, crash: str
) -> None:
    rig, load, refs = staged
    steps = rig.commit_steps(load, *refs)
    taken = run_steps(rig, steps, done) if done else []
    has_intent = Step.SYNC in taken

    CRASHES[crash](rig)

    found = find_committed(rig.engine, rig.queue, load.ref)
    assert (found is not None) == has_intent
    assert (load.ref in [each.ref for each in loads_under_way(rig.engine, rig.queue).values()]) == (
        not has_intent
    )
    check_whole(rig, load, refs)


@pytest.mark.parametrize("crash", ["killed", "power lost"])
def test_crash_between_the_intent_and_its_sync_leaves_one_or_the_other(
    staged: Staged, crash: str
) -> None:
    rig, load, refs = staged
    steps = rig.commit_steps(load, *refs)
    while next(steps) is not Step.SYNC:
        pass

    CRASHES[crash](rig)

    found = find_committed(rig.engine, rig.queue, load.ref)
    assert (found is None) == (crash == "power lost")
    check_whole(rig, load, refs)


# --- in the middle of taking in -------------------------------------------------------------------


class Interrupted:
    """In place of `Store.take_in`: at one of its calls the server goes.

    RocksDB takes in the files of a call together, and only then deletes them, one by one.
    """

    def __init__(self, store: Store, call: int, how: str) -> None:
        self._real = store.take_in
        self._call = call
        self._how = how
        self.calls = 0

    def __call__(self, family: Family, files: Sequence[tuple[Path, bytes]]) -> None:
        self.calls += 1
        if self.calls - 1 != self._call:
            self._real(family, files)
            return
        if self._how == "before":
            raise Crash
        left = {"after": 0, "none deleted": len(files), "some deleted": len(files) // 2}[self._how]
        for path, _ in files[:left]:
            shutil.copy(path, path.with_suffix(".kept"))
        self._real(family, files)
        for path, _ in files[:left]:
            path.with_suffix(".kept").rename(path)
        raise Crash


def count_calls() -> int:
    rig, load, refs = staged_rig()
    counting = Interrupted(rig.store, -1, "before")
    rig.store.take_in = counting  # type: ignore[method-assign]
    rig.commit(load, *refs)
    rig.close()
    return counting.calls


@pytest.mark.parametrize("crash", ["killed", "power lost"])
@pytest.mark.parametrize("how", ["before", "after", "none deleted", "some deleted"])
@pytest.mark.parametrize("call", range(count_calls()))
def test_crash_while_files_are_taken_in_is_finished_at_the_next_opening(
    staged: Staged, call: int, how: str, crash: str
) -> None:
    rig, load, refs = staged
    steps = rig.commit_steps(load, *refs)
    rig.until_intent(steps)
    rig.store.take_in = Interrupted(rig.store, call, how)  # type: ignore[method-assign]
    with pytest.raises(Crash):
        run_steps(rig, steps, 1000)

    CRASHES[crash](rig)

    assert find_committed(rig.engine, rig.queue, load.ref) is not None
    check_whole(rig, load, refs)


@pytest.mark.parametrize("crash", ["killed", "power lost"])
@pytest.mark.parametrize("call", range(0, count_calls(), 2))
def test_crash_again_while_the_load_is_finished_is_finished_the_time_after(
    staged: Staged, call: int, crash: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig, load, refs = staged
    rig.until_intent(rig.commit_steps(load, *refs))
    with monkeypatch.context() as patch:
        calls = 0

        def take_in(store: RocksStore, family: Family, files: Sequence[tuple[Path, bytes]]) -> None:
            nonlocal calls
            real_take_in(store, family, files)
            calls += 1
            if calls > call:
                raise Crash

        real_take_in = RocksStore.take_in
        patch.setattr(RocksStore, "take_in", take_in)
        with pytest.raises(Crash):
            rig.reopen()

    CRASHES[crash](rig)

    check_whole(rig, load, refs)


@pytest.mark.parametrize("crash", ["killed", "power lost"])
def test_crash_when_the_last_batch_is_refused_is_finished_at_the_next_opening(
    staged: Staged, crash: str
) -> None:
    rig, load, refs = staged
    steps = rig.commit_steps(load, *refs)
    rig.until_intent(steps)

    def refuse(batch: object) -> None:
        raise Crash

    rig.store.write = refuse  # type: ignore[method-assign]
    with pytest.raises(Crash):
        run_steps(rig, steps, 1000)

    CRASHES[crash](rig)

    check_whole(rig, load, refs)


@pytest.mark.parametrize("crash", CRASHES)
@pytest.mark.parametrize("done", range(1, STEPS + 2))
def test_what_others_did_between_the_steps_is_as_durable_as_ever(
    staged: Staged, done: int, crash: str
) -> None:
    rig, load, refs = staged
    steps = rig.commit_steps(load, *refs)
    before = rig.stats().ready
    added = 0
    for _ in range(done):
        run_steps(rig, steps, 1)
        rig.add(b"between")
        added += 1
    rig.sync()
    rig.add(b"not synced")

    CRASHES[crash](rig)

    assert check_store(rig.store) == []
    rig.commit(load, *refs)
    lost = int(crash == "power lost")
    assert rig.stats().ready + rig.stats().delayed == before + added + 1 - lost + 5
    rig.assert_sound()
    contents = polled_later(rig)
    assert contents.count(b"between") == added
    assert contents.count(b"not synced") == 1 - lost
    assert sorted(c for c in contents if c not in (b"between", b"not synced")) == sorted(CONTENTS)


# --- the rest of opening --------------------------------------------------------------------------


def test_opening_with_a_file_missing_that_was_not_taken_in_is_refused_and_says_why(
    staged: Staged,
) -> None:
    rig, load, refs = staged
    rig.until_intent(rig.commit_steps(load, *refs))
    path = min((rig.directory(load) / part_directory(refs[0])).glob("*-items.sst"))
    path.rename(path.with_suffix(".away"))
    data = rig.store.loads_path.parent
    rig.store.close()

    for _ in range(2):
        store = RocksStore(data)
        with pytest.raises(StorageCorrupt, match=r"items.sst is missing: a load was half commi"):
            open_engine(store, IdSource(rig.random))
        store.close()

    path.with_suffix(".away").rename(path)
    rig.store = RocksStore(data)
    rig.engine = open_engine(rig.store, IdSource(rig.random))
    check_whole(rig, load, refs)


def test_opening_to_read_only_finishes_nothing_and_the_check_reports_it(staged: Staged) -> None:
    rig, load, refs = staged
    rig.until_intent(rig.commit_steps(load, *refs))
    data = rig.store.loads_path.parent
    rig.store.close()

    with RocksStore(data, read_only=True) as store:
        assert [each.rule for each in check_store(store)] == ["I13"]

    rig.store = RocksStore(data)
    rig.engine = open_engine(rig.store, IdSource(rig.random))
    check_whole(rig, load, refs)


def test_opening_finishes_the_loads_of_every_queue_and_leaves_others_under_way(
    staged: Staged,
) -> None:
    rig, load, refs = staged
    other = rig.begin("still staging", batch="held")
    ref = rig.stage(other, Rows([b"later"]))
    rig.until_intent(rig.commit_steps(load, *refs))

    rig.crash()

    assert [each.ref for each in loads_under_way(rig.engine, rig.queue).values()] == [other.ref]
    assert not rig.queue.keys.is_frozen
    rig.add_items(NewItems([b"x"], keys=["new"]))
    assert rig.commit(other, ref).rows == 1
    rig.assert_sound()


def test_opening_after_a_finished_commit_does_nothing_more(staged: Staged) -> None:
    rig, load, refs = staged
    rig.commit(load, *refs)
    disk = rig.dump()

    rig.crash()

    assert rig.dump() == disk
