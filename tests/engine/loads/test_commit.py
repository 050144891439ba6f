"""Commit of a load: as adds of the same rows, all at once, and at most once."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from queueber.db.families import Family
from queueber.db.records.loads import LoadedRecord, LoadRecord, part_directory
from queueber.engine.kernel.transaction import Step
from queueber.errors import (
    Aborted,
    InvalidArgument,
    NotFound,
    QueueberError,
    ResourceExhausted,
    Unavailable,
)
from queueber.ids import origin_of, range_id
from queueber.limits import BATCH_KEEP_MS, LOAD_KEEP_MS
from queueber.model import LoadRef, NewItems, PartRef, QueueSettings, Rows
from tests.engine.load_cases import (
    RICH,
    Plan,
    Row,
    expected_outcome,
    outcome,
    polled_later,
    prepare,
    stage_all,
)
from tests.support.load_rig import LoadRig
from tests.support.loading import run_commit
from tests.support.operations import (
    abort_load,
    cancel,
    commit_load,
    configure_queue,
    delete_queue,
    find_committed,
    loads_under_way,
    receipt,
)
from tests.support.rig import QUEUE, START_MS, refuse_write


@pytest.fixture
def rig() -> Iterator[LoadRig]:
    made = LoadRig()
    yield made
    made.close()


@contextmanager
def refused(rig: LoadRig, error: type[QueueberError], match: str) -> Iterator[None]:
    """The commit is refused, and all is as before; it may go on."""
    before = rig.dump(), rig.memory(), rig.loads_memory()
    with pytest.raises(error, match=match):
        yield
    assert (rig.dump(), rig.memory(), rig.loads_memory()) == before
    rig.assert_sound()


# --- as adds --------------------------------------------------------------------------------------

some_rows = st.lists(
    st.builds(
        Row,
        contents=st.binary(max_size=20),
        delay_ms=st.sampled_from([0, 0, 0, 1, 50, 51, 3000]),
        priority=st.sampled_from([5, 5, 5, 0, 9]),
        key=st.sampled_from(["", "", "a", "b", "c", "d"]),
        attributes=st.sampled_from([None, None, {"a": "b"}]),
    ),
    max_size=8,
)
plans = st.builds(
    Plan,
    parts=st.dictionaries(st.sampled_from([0, 1, 7, (1 << 24) - 1]), some_rows, max_size=4),
    batch=st.sampled_from(["", "batch"]),
    before=some_rows,
    sorted_entries=st.integers(1, 5),
    file_bytes=st.sampled_from([1, 1 << 20]),
    rows_a_call=st.integers(1, 8),
).filter(lambda plan: any(plan.parts.values()))


def check_against_adds(plan: Plan, settings: QueueSettings | None = None) -> None:
    expected, contents = expected_outcome(plan)
    rig = LoadRig(settings)
    try:
        load = prepare(rig, plan)
        loaded = rig.commit(load, *stage_all(rig, plan, load))

        assert outcome(rig) == expected
        rows = sum(map(len, plan.parts.values()))
        assert loaded.rows + loaded.duplicates == rows
        rig.assert_sound()
        assert polled_later(rig) == contents
    finally:
        rig.close()


def test_commit_leaves_what_adds_of_the_same_rows_leave() -> None:
    check_against_adds(RICH)


@settings(max_examples=40, deadline=None)
@given(plan=plans)
def test_commit_of_any_load_leaves_what_adds_of_the_same_rows_leave(plan: Plan) -> None:
    check_against_adds(plan)


def test_commit_remembers_the_load(rig: LoadRig) -> None:
    load = rig.begin(epoch=3, batch="b")
    refs = [
        rig.stage(load, Rows([b"a", b"b"], keys=["k", "k"])),
        rig.stage(load, Rows([b"c"]), partition=1),
    ]
    rig.now_ms += 100

    loaded = rig.commit(load, *refs)

    assert loaded == LoadedRecord(
        ref=LoadRef("load", 3),
        batch=1,
        started_at_ms=START_MS,
        committed_at_ms=START_MS + 100,
        forget_at_ms=START_MS + 100 + LOAD_KEEP_MS,
        rows=2,
        duplicates=1,
    )
    assert find_committed(rig.engine, rig.queue, LoadRef("load", 3)) == loaded
    assert loads_under_way(rig.engine, rig.queue) == {}
    assert rig.engine.loads.stale_directories == [load.directory]
    assert len(rig.dump()["loads"]) == 1
    rig.assert_sound()
    rig.reopen()
    assert find_committed(rig.engine, rig.queue, LoadRef("load", 3)) == loaded


def test_commit_gives_ids_that_tell_partition_and_row(rig: LoadRig) -> None:
    load = rig.begin()
    refs = [rig.stage(load, Rows([b"x", b"y"]), partition=p) for p in (9, 4)]
    rig.commit(load, *refs)

    polled = rig.poll(10)

    assert [origin_of(each) for each in polled.ids] == [(4, 0), (4, 1), (9, 0), (9, 1)]


def test_commit_of_no_parts_adds_nothing(rig: LoadRig) -> None:
    loaded = rig.commit(rig.begin())

    assert (loaded.rows, loaded.duplicates) == (0, 0)
    assert rig.stats().added_total == 0
    rig.assert_sound()


def test_commit_of_a_part_without_rows_adds_nothing(rig: LoadRig) -> None:
    load = rig.begin()

    assert rig.commit(load, rig.stage(load, Rows([]))).rows == 0
    rig.assert_sound()


def test_commit_takes_the_attempts_that_it_names_and_no_other(rig: LoadRig) -> None:
    load = rig.begin(batch="b")
    rig.stage(load, Rows([b"lost"] * 3, keys=["a", "b", "c"]), attempt="a")
    winner = rig.stage(load, Rows([b"won"], keys=["d"]), attempt="b")
    rig.stage(load, Rows([b"never"]), partition=1)

    assert rig.commit(load, winner).rows == 1

    assert rig.polled_contents() == [b"won"]
    assert receipt(rig.engine, rig.queue, "b").added == 1
    assert len(rig.dump()["keys"]) == 1
    rig.assert_sound()


def test_commit_in_any_order_of_parts_is_in_order_of_partition(rig: LoadRig) -> None:
    load = rig.begin()
    refs = {p: rig.stage(load, Rows([b"%d" % p]), partition=p) for p in (2, 0, 1)}

    rig.commit(load, refs[1], refs[2], refs[0])

    assert rig.polled_contents() == [b"0", b"1", b"2"]


def test_items_of_a_load_are_polled_by_priority_among_those_that_were_there(rig: LoadRig) -> None:
    rig.add_items(NewItems([b"old 9", b"old 5", b"old 0"], priorities=[9, 5, 0]))
    rig.poll(1)  # A window of each level is in memory.
    rig.now_ms += 10

    rig.load(Rows([b"new 0", b"new 9", b"new 5", b"new 7"], priorities=[0, 9, 5, 7]))

    assert rig.polled_contents(1) == [b"new 9", b"new 7", b"old 5", b"new 5", b"old 0", b"new 0"]


def test_items_of_a_load_come_before_those_added_since_it_began(rig: LoadRig) -> None:
    """They have the time of its begin: windows that were read since must not hide them."""
    load = rig.begin()
    ref = rig.stage(load, Rows([b"load"] * 3))
    rig.now_ms += 10
    rig.add(*[b"later"] * 3)
    assert rig.poll(1).contents == [b"later"]

    rig.commit(load, ref)

    rig.assert_sound()
    assert rig.polled_contents(1) == [b"load"] * 3 + [b"later"] * 2


def test_items_of_a_load_larger_than_a_window_are_polled_to_the_last(
    rig: LoadRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("queueber.engine.queue.ready_index.READY_WINDOW_ENTRIES", 4)
    load = rig.begin()
    contents = [b"%d" % n for n in range(50)]
    rig.add(b"a", b"b")

    rig.commit(load, rig.stage(load, Rows(contents), file_bytes=1))

    assert rig.polled_contents(3) == [*contents, b"a", b"b"]


def test_delayed_items_of_a_load_are_promoted_at_their_time(rig: LoadRig) -> None:
    load = rig.begin()
    at_ms = load.started_at_ms
    ref = rig.stage(load, Rows([b"40", b"0", b"20"], [at_ms + 40, at_ms - 1, at_ms + 20]))
    rig.commit(load, ref)
    assert (rig.stats().ready, rig.stats().delayed) == (1, 2)
    assert rig.engine.agenda.next_ms() == at_ms + 20

    assert rig.polled_contents() == [b"0"]
    rig.now_ms += 20
    rig.sweep_all()
    assert rig.polled_contents() == [b"20"]
    rig.now_ms += 20
    rig.sweep_all()
    assert rig.polled_contents() == [b"40"]
    rig.assert_sound()


def test_delayed_items_whose_time_came_before_the_commit_are_promoted_at_once(
    rig: LoadRig,
) -> None:
    load = rig.begin()
    ref = rig.stage(load, Rows([b"x"], [load.started_at_ms + 5]))
    rig.now_ms += 100

    rig.commit(load, ref)
    rig.sweep_all()

    assert rig.polled_contents() == [b"x"]


def test_items_of_a_load_can_be_cancelled_by_their_ids(rig: LoadRig) -> None:
    load = rig.begin(batch="b")
    rig.commit(load, rig.stage(load, Rows([b"r", b"d"], [0, load.started_at_ms + 50])))

    ids = [range_id(load.id_head, 0, row) for row in (0, 1)]
    assert cancel(rig.engine, rig.queue, ids, rig.now_ms) == [True, True]

    assert receipt(rig.engine, rig.queue, "b").complete
    assert rig.dump()["places"] == []
    rig.assert_sound()


def test_load_of_load_of_load_adds_up(rig: LoadRig) -> None:
    for name in "abc":
        rig.load(Rows([b"x", b"y"], keys=[f"{name}1", "same"]), name=name)
        rig.assert_sound()

    assert rig.stats().added_total == 4
    assert rig.stats().duplicates_total == 2
    assert rig.polled_contents() == [b"x", b"y", b"x", b"x"]


def test_duplicate_of_an_older_item_leaves_its_key_and_the_time_to_forget_it(rig: LoadRig) -> None:
    rig.add_items(NewItems([b"first"], keys=["k"]))
    before = rig.dump()
    rig.now_ms += 10

    assert rig.load(Rows([b"again", b"other"], keys=["k", "k"])).duplicates == 2

    assert rig.dump()["keys"] == before["keys"]
    assert [each for each in before["forget"] if each not in rig.dump()["forget"]] == []
    rig.assert_sound()


# --- batches --------------------------------------------------------------------------------------


def test_batch_of_a_load_is_complete_when_its_items_have_ended(rig: LoadRig) -> None:
    load = rig.begin(batch="b")
    rig.commit(load, rig.stage(load, Rows([b"x", b"y"], keys=["k", "k"])))
    assert receipt(rig.engine, rig.queue, "b").added == 1
    assert not receipt(rig.engine, rig.queue, "b").complete

    polled = rig.poll(5)
    rig.remove(polled.ids, polled.lease_id)

    found = receipt(rig.engine, rig.queue, "b")
    assert (found.complete, found.done, found.added_digest) == (True, 1, found.done_digest)
    rig.now_ms += BATCH_KEEP_MS
    rig.sweep_all()
    rig.assert_sound()


@pytest.mark.parametrize("rows", [Rows([]), Rows([b"x", b"y"], keys=["k", "k"])])
def test_batch_of_a_load_that_brings_nothing_is_complete_as_with_an_add(
    rig: LoadRig, rows: Rows
) -> None:
    rig.add_items(NewItems([b"first"], keys=["k"]))

    rig.load(rows, batch="b")

    assert receipt(rig.engine, rig.queue, "b").complete
    assert rig.queue.batches.finished == {"b"}
    rig.assert_sound()


def test_batch_that_another_load_holds_is_not_complete(rig: LoadRig) -> None:
    rig.begin("other", batch="b")

    rig.load(Rows([]), batch="b")

    assert not receipt(rig.engine, rig.queue, "b").complete
    rig.assert_sound()


# --- refused --------------------------------------------------------------------------------------


def test_commit_of_what_is_not_under_way_is_refused(rig: LoadRig) -> None:
    load = rig.begin()

    for ref in (LoadRef("else"), LoadRef("load", 1)):
        with refused(rig, NotFound, "is not under way"):
            rig.commit(replace(load, ref=ref))


def test_commit_of_a_part_that_was_not_finished_is_refused(rig: LoadRig) -> None:
    load = rig.begin()
    ref = rig.stage(load, Rows([b"a"]))

    for missing in (PartRef(0, "b"), PartRef(1, "a")):
        with refused(
            rig,
            InvalidArgument,
            f"attempt '{missing.attempt}' at partition {missing.partition} was not finished",
        ):
            rig.commit(load, ref, missing) if missing.partition else rig.commit(load, missing)


def test_commit_of_two_attempts_at_a_partition_is_refused(rig: LoadRig) -> None:
    load = rig.begin()
    refs = [rig.stage(load, Rows([b"a"]), attempt=attempt) for attempt in "ab"]

    with refused(rig, InvalidArgument, "two attempts at one partition"):
        rig.commit(load, *refs)
    with refused(rig, InvalidArgument, "two attempts at one partition"):
        rig.commit(load, refs[0], refs[0])


def test_commit_of_too_many_parts_is_refused(rig: LoadRig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("queueber.engine.loads.commit.LOAD_PARTS_MAX", 1)
    load = rig.begin()
    refs = [rig.stage(load, Rows([b"a"]), partition=p) for p in (0, 1)]

    with refused(rig, InvalidArgument, "parts: 2 are too many; the limit is 1"):
        rig.commit(load, *refs)


@pytest.mark.parametrize("family", ["items", "claims", "keys"])
def test_commit_of_a_part_that_lost_a_file_is_refused_before_the_intent(
    rig: LoadRig, family: str
) -> None:
    load = rig.begin()
    ref = rig.stage(load, Rows([b"a"], keys=["k"]))
    (path,) = (rig.directory(load) / part_directory(ref)).glob(f"*-{family}.sst")
    path.rename(path.with_suffix(".gone"))

    with refused(rig, InvalidArgument, f"at partition 0 has lost its file '.*{family}.sst'"):
        rig.commit(load, ref)

    path.with_suffix(".gone").rename(path)
    assert rig.commit(load, ref).rows == 1


def test_commit_whose_claims_are_not_as_many_as_announced_is_refused(rig: LoadRig) -> None:
    load = rig.begin()
    ref = rig.stage(load, Rows([b"a", b"b"], keys=["k", "j"]))
    directory = rig.directory(load) / part_directory(ref)
    (claims,) = directory.glob("*-claims.sst")
    other = rig.begin("other")
    rig.stage(other, Rows([b"a"], keys=["k"]))
    (fewer,) = rig.directory(other).glob("*/*-claims.sst")
    claims.unlink()
    fewer.rename(claims)

    with refused(rig, InvalidArgument, "no id of the load"):
        rig.commit(load, ref)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (QueueSettings(items_max=4), "holds 2 items; 3 more would pass its limit of 4"),
        (QueueSettings(bytes_max=9), "holds 4 bytes; 6 more would pass its limit of 9"),
    ],
)
def test_commit_beyond_the_limits_of_the_queue_is_refused(
    rig: LoadRig, settings: QueueSettings, message: str
) -> None:
    rig.add(b"xx", b"yy")
    load = rig.begin()
    ref = rig.stage(load, Rows([b"a", b"bb", b"ccc"]))
    configure_queue(rig.engine, QUEUE, settings, rig.now_ms)

    with refused(rig, ResourceExhausted, message):
        rig.commit(load, ref)

    polled = rig.poll(1)
    rig.remove(polled.ids, polled.lease_id)
    assert rig.commit(load, ref).rows == 3


def test_commit_with_too_many_duplicates_is_refused(
    rig: LoadRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("queueber.engine.loads.duplicates.LOAD_DUPLICATES_MAX", 2)
    rig.add_items(NewItems([b"x"], keys=["a"]))
    load = rig.begin(batch="b")
    too_many = rig.stage(load, Rows([b"1", b"2", b"3", b"4"], keys=["a", "b", "b", "b"]))
    enough = rig.stage(load, Rows([b"1", b"2", b"3"], keys=["a", "b", "b"]), attempt="b")

    with refused(rig, ResourceExhausted, "key: more than 2 rows, the limit of a load"):
        rig.commit(load, too_many)

    assert not rig.queue.keys.is_frozen
    assert rig.commit(load, enough).duplicates == 2
    rig.assert_sound()


def test_commit_whose_intent_the_disk_refuses_changes_nothing(
    rig: LoadRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    load = rig.begin(batch="b")
    ref = rig.stage(load, Rows([b"a"], keys=["k"]))

    with monkeypatch.context() as patch, refused(rig, Unavailable, "disk"):
        patch.setattr(rig.store, "write", refuse_write)
        rig.commit(load, ref)

    assert rig.commit(load, ref).rows == 1


def test_commit_that_the_disk_refuses_at_its_end_can_be_finished(
    rig: LoadRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After the intent there is no way back, and nobody sees half of it."""
    load = rig.begin(batch="b")
    ref = rig.stage(load, Rows([b"a", b"b"], keys=["k", "k"]))
    steps = rig.commit_steps(load, ref)
    rig.until_intent(steps)
    with monkeypatch.context() as patch:
        patch.setattr(rig.store, "write", refuse_write)
        with pytest.raises(Unavailable):
            run_commit(rig.engine, steps)
    assert not rig.poll().ids
    with pytest.raises(Aborted, match="is being committed"):
        abort_load(rig.engine, rig.queue, load.ref, rig.now_ms)
    with pytest.raises(Unavailable, match="a load with keys is being committed"):
        rig.add_items(NewItems([b"c"], keys=["k"]))

    assert rig.commit(load, ref).rows == 1

    assert rig.polled_contents() == [b"a"]
    rig.assert_sound()


# --- repeated -------------------------------------------------------------------------------------


def test_commit_again_answers_the_same_and_changes_nothing(rig: LoadRig) -> None:
    load = rig.begin(batch="b")
    ref = rig.stage(load, Rows([b"a"], keys=["k"]))
    loaded = rig.commit(load, ref)
    rig.now_ms += 1000
    before = rig.dump(), rig.memory(), rig.loads_memory()

    assert rig.commit(load, ref) == loaded
    assert rig.commit(load, PartRef(99, "whatever")) == loaded

    assert (rig.dump(), rig.memory(), rig.loads_memory()) == before


def test_commit_of_an_epoch_before_answers_with_the_later_one(rig: LoadRig) -> None:
    old = rig.begin(epoch=1)
    rig.commit(old, rig.stage(old, Rows([b"a"])))
    new = rig.begin(epoch=2)
    loaded = rig.commit(new, rig.stage(new, Rows([b"b"])))

    assert rig.commit(old) == loaded
    assert rig.stats().ready == 2


# --- what goes on meanwhile -----------------------------------------------------------------------


def steps_of(rig: LoadRig, load: LoadRecord, *refs: PartRef) -> Iterator[Step]:
    """Every step, with the sync that it asks for."""
    steps = rig.commit_steps(load, *refs)
    for step in steps:
        if step is Step.SYNC:
            rig.store.sync()
        yield step


def test_commit_lets_others_have_a_turn_and_syncs_once(
    rig: LoadRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("queueber.engine.loads.duplicates._SLICE", 2)
    load = rig.begin()
    rows = Rows([b"x"] * 6, [load.started_at_ms + n % 2 for n in range(6)], keys=list("abcdef"))

    steps = list(steps_of(rig, load, rig.stage(load, rows)))

    # Three slices of claims; then a file of items and one of places.
    assert steps == [Step.TURN] * 3 + [Step.SYNC] + [Step.TURN] * 2


def test_nobody_sees_a_part_of_a_load_before_its_last_step(rig: LoadRig) -> None:
    load = rig.begin(batch="b")
    refs = [
        rig.stage(
            load, Rows([b"x", b"y"], [0, load.started_at_ms + 1], keys=["k", ""]), partition=p
        )
        for p in range(3)
    ]
    rig.now_ms += 10
    stats = rig.stats()

    for _ in steps_of(rig, load, *refs):
        assert not rig.poll(10).ids
        assert replace(rig.stats(), oldest_claimable_age_ms=0) == replace(
            stats, oldest_claimable_age_ms=0
        )
        assert receipt(rig.engine, rig.queue, "b").added == 0
        rig.sweep_all()

    assert rig.stats().added_total == 4
    rig.assert_sound()


def test_adds_without_a_key_and_polls_go_on_while_keys_are_refused(rig: LoadRig) -> None:
    load = rig.begin()
    ref = rig.stage(load, Rows([b"load"] * 3, keys=["a", "b", "c"]))
    rig.now_ms += 5
    added, polled = 0, []

    for _ in steps_of(rig, load, ref):
        disk = rig.dump()
        with pytest.raises(Unavailable, match="a load with keys is being committed in queue 'q'"):
            rig.add_items(NewItems([b"keyed"], keys=["z"]))
        assert rig.dump() == disk
        rig.add(b"plain")
        rig.add_items(NewItems([b"plain"], keys=[""], batch="other"))
        added += 2
        polled += list(rig.poll(1).contents)

    assert polled == [b"plain"] * (added // 2)
    assert rig.add_items(NewItems([b"keyed"], keys=["a"])).duplicates == [True]
    rig.assert_sound()
    assert rig.polled_contents() == [b"load"] * 3 + [b"plain"] * (added // 2)


def test_keyed_adds_go_on_while_a_load_without_keys_is_committed(rig: LoadRig) -> None:
    load = rig.begin()
    ref = rig.stage(load, Rows([b"load"] * 3))

    for number, _ in enumerate(steps_of(rig, load, ref)):
        rig.add_items(NewItems([b"keyed"], keys=[f"{number}"]))

    rig.assert_sound()


def test_keys_that_come_due_while_they_are_frozen_are_forgotten_after_it(rig: LoadRig) -> None:
    window_ms = rig.queue.settings.dedup_window_ms
    rig.add_items(NewItems([b"x"], keys=["old"]))
    load = rig.begin(timeout_ms=10 * window_ms)
    ref = rig.stage(load, Rows([b"load"] * 2, keys=["old", "new"]))
    steps = rig.commit_steps(load, ref)
    next(steps)

    rig.now_ms += window_ms
    rig.sweep_all()
    assert len(rig.dump()["keys"]) == 1
    loaded = run_commit(rig.engine, steps)

    assert loaded.duplicates == 1
    rig.assert_sound()
    cancel(rig.engine, rig.queue, rig.stored_ids(), rig.now_ms)
    rig.now_ms += 1000
    rig.sweep_all()
    assert rig.dump()["keys"] == []
    rig.assert_sound()


def test_keys_whose_time_is_over_are_forgotten_before_the_search(rig: LoadRig) -> None:
    """They keep nothing out, and must not be forgotten after they have come anew."""
    rig.add_items(NewItems([b"x"] * 5, keys=list("abcde")))
    rig.now_ms += rig.queue.settings.dedup_window_ms
    load = rig.begin()
    ref = rig.stage(load, Rows([b"y"] * 5, keys=list("abcde")))

    assert rig.commit(load, ref).duplicates == 0

    rig.assert_sound()
    rig.now_ms += 1000
    rig.sweep_all()
    assert rig.add_items(NewItems([b"z"], keys=["a"])).duplicates == [True]


def test_keys_of_a_load_that_took_longer_than_its_window_are_forgotten_at_once(
    rig: LoadRig,
) -> None:
    load = rig.begin()
    ref = rig.stage(load, Rows([b"y", b"z"], keys=["a", "a"]))
    rig.now_ms += load.dedup_window_ms + 1

    assert rig.commit(load, ref).duplicates == 1
    rig.assert_sound()
    assert rig.add_items(NewItems([b"new"], keys=["a"])).duplicates == ()
    rig.assert_sound()
    rig.sweep_all()
    rig.assert_sound()


def test_load_whose_time_runs_out_while_it_is_committed_is_finished(rig: LoadRig) -> None:
    load = rig.begin(timeout_ms=1000)
    ref = rig.stage(load, Rows([b"x"]))
    steps = rig.commit_steps(load, ref)
    rig.until_intent(steps)

    rig.now_ms += 5000
    rig.sweep_all()
    loaded = run_commit(rig.engine, steps)

    assert loaded.rows == 1
    rig.assert_sound()
    rig.now_ms += 5000
    rig.sweep_all()
    assert rig.polled_contents() == [b"x"]


def test_commit_under_way_is_refused_to_another_epoch_as_a_load_that_is_not_there(
    rig: LoadRig,
) -> None:
    """Its own epoch hears that it goes on."""
    load = rig.begin()
    ref = rig.stage(load, Rows([b"x"]))

    for _ in steps_of(rig, load, ref):
        if rig.engine.loads.of(rig.queue).is_commit_under_way:
            with pytest.raises(NotFound, match="'load' is not under way"):
                next(commit_load(rig.engine, rig.queue, LoadRef("load", 1), [ref], rig.now_ms))
            with pytest.raises(Aborted, match="is being committed"):
                next(rig.commit_steps(load, ref))

    assert rig.polled_contents() == [b"x"]


def test_crash_in_a_search_after_the_load_was_put_off_leaves_it_untouched(rig: LoadRig) -> None:
    """Its record is written then, and must not say that it is being committed."""
    rig.add_items(NewItems([b"x"], keys=["k"]))
    load = rig.begin(timeout_ms=1000)
    rig.now_ms += 900
    ref = rig.stage(load, Rows([b"a", b"b"], keys=["k", "l"]))
    rig.now_ms += 200
    steps = rig.commit_steps(load, ref)
    next(steps)
    rig.sweep_all()
    next(steps)

    rig.reopen()

    assert rig.stats().ready == 1
    assert rig.commit(load, ref).rows == 1
    rig.assert_sound()


def test_second_load_waits_for_the_first_to_be_committed(rig: LoadRig) -> None:
    loads = [rig.begin(name) for name in "ab"]
    refs = [
        rig.stage(load, Rows([name], keys=["k"]))
        for load, name in zip(loads, (b"a", b"b"), strict=True)
    ]
    first = rig.commit_steps(loads[0], refs[0])
    next(first)

    with pytest.raises(Unavailable, match="another load is being committed in queue 'q'"):
        rig.commit(loads[1], refs[1])
    assert rig.queue.keys.is_frozen

    assert run_commit(rig.engine, first).rows == 1
    assert rig.commit(loads[1], refs[1]).duplicates == 1
    rig.assert_sound()


@pytest.mark.parametrize("turns", [0, 1, 2, 3])
def test_commit_given_up_before_the_intent_has_changed_nothing(
    rig: LoadRig, turns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("queueber.engine.loads.duplicates._SLICE", 1)
    load = rig.begin(batch="b")
    ref = rig.stage(load, Rows([b"x"] * 3, keys=list("abc")))
    before = rig.dump(), rig.memory(), rig.loads_memory()
    steps = rig.commit_steps(load, ref)
    for _ in range(turns):
        assert next(steps) is Step.TURN

    steps.close()

    assert (rig.dump(), rig.memory(), rig.loads_memory()) == before
    assert not (rig.directory(load) / "search").exists()
    assert rig.commit(load, ref).rows == 3


def commit_again(rig: LoadRig, load: LoadRecord, ref: PartRef) -> None:
    rig.commit(load, ref)


def begin_later_epoch(rig: LoadRig, load: LoadRecord, ref: PartRef) -> None:
    rig.begin(epoch=9)


def abort(rig: LoadRig, load: LoadRecord, ref: PartRef) -> None:
    abort_load(rig.engine, rig.queue, load.ref, rig.now_ms)


@pytest.mark.parametrize("call", [commit_again, begin_later_epoch, abort])
def test_load_that_is_being_committed_is_left_alone_by_others(
    rig: LoadRig, call: Callable[[LoadRig, LoadRecord, PartRef], None]
) -> None:
    load = rig.begin()
    ref = rig.stage(load, Rows([b"x"], [load.started_at_ms + 1], keys=["k"]))

    for _ in steps_of(rig, load, ref):
        with pytest.raises(Aborted, match="is being committed"):
            call(rig, load, ref)

    assert rig.stats().added_total == 1
    rig.assert_sound()


@pytest.mark.parametrize("step", range(4))
def test_queue_deleted_between_steps_ends_the_commit(rig: LoadRig, step: int) -> None:
    load = rig.begin()
    ref = rig.stage(load, Rows([b"x"], [load.started_at_ms + 1], keys=["k"]))
    steps = rig.commit_steps(load, ref)
    for _ in range(step + 1):
        if next(steps) is Step.SYNC:
            rig.store.sync()
    delete_queue(rig.engine, QUEUE)

    with pytest.raises(NotFound, match="queue 'q' was deleted while the load was committed"):
        run_commit(rig.engine, steps)

    assert [family.family_name for family in Family if rig.keys(family)] == ["default"]
    rig.reopen()
    rig.assert_sound()


def test_commit_that_begins_after_its_queue_was_deleted_writes_nothing(rig: LoadRig) -> None:
    load = rig.begin()
    steps = commit_load(rig.engine, rig.queue, load.ref, [], rig.now_ms)
    delete_queue(rig.engine, QUEUE)
    before = rig.dump()

    with pytest.raises(NotFound, match="was deleted while the load was committed"):
        next(steps)

    assert rig.dump() == before
