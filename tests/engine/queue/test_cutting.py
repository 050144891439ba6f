"""Cutting: what happens to some items of a run leaves the others where they were, in order."""

from collections.abc import Sequence

import pytest

from queueber.db.families import Family
from queueber.db.records.dead_letters import decode_dead
from queueber.db.records.keys import due_part
from queueber.db.records.runs import (
    MarkFields,
    Run,
    encode_run,
)
from queueber.model import ItemState, NewItems
from tests.engine.making import PLAIN, allow_attempts, make_dead_run, parts_of
from tests.support.operations import cancel, purge, redrive, redrive_first
from tests.support.rig import Rig

COUNT = 7
CONTENTS = [b"%d" % n * (n + 1) for n in range(COUNT)]
DIED = MarkFields(attempts=1)
RELEASED = MarkFields(uncharged=1)
FAMILIES = {
    ItemState.READY: Family.VISIBILITY_INDEX,
    ItemState.DELAYED: Family.DELAYED,
    ItemState.LEASED: Family.LEASES,
    ItemState.DEAD: Family.DEAD,
}
MARKS = {ItemState.DEAD: DIED, ItemState.READY: RELEASED}
states = pytest.mark.parametrize("state", ItemState, ids=lambda state: state.name)


def make(rig: Rig, state: ItemState) -> list[bytes]:
    """One run of the state; if it is ready or delayed, not at the time in its ids."""
    if state is ItemState.DEAD:
        return make_dead_run(rig, NewItems(CONTENTS))
    ids = rig.add(*CONTENTS, delays_ms=[50 if state is ItemState.DELAYED else 0] * COUNT)
    if state is not ItemState.DELAYED:
        polled = rig.poll(COUNT)
    if state is ItemState.READY:
        rig.now_ms += 50
        assert rig.release(polled.ids, polled.lease_id) == [True] * COUNT
    return ids


def parts(ids: Sequence[bytes], left: Sequence[int], mark: MarkFields = PLAIN) -> list[Run]:
    return parts_of(ids, CONTENTS, left, mark)


def assert_left(rig: Rig, state: ItemState, ids: Sequence[bytes], left: Sequence[int]) -> None:
    """The run is as it was made but for the items that are gone."""
    runs = parts(ids, left, MARKS.get(state, PLAIN))
    assert rig.runs(FAMILIES[state]) == runs
    assert getattr(rig.queue.counters, state.value) == len(left)
    places: list[tuple[bytes, bytes]] = []
    if state in (ItemState.READY, ItemState.DELAYED):
        at_ms = rig.now_ms + (50 if state is ItemState.DELAYED else 0)
        keys = [key[-24:] for key in rig.keys(FAMILIES[state])]
        assert keys == [due_part(at_ms, run.last) for run in runs]
        places = [(rig.queue.prefix + run.last, at_ms.to_bytes(8)) for run in runs]
    if state is ItemState.READY:
        assert rig.queue.counters.levels == ({4: (len(left), keys[0])} if left else {})
    assert rig.dump()["places"] == places
    if state is ItemState.LEASED:
        assert len(rig.keys(Family.HOLDERS)) == len(rig.keys(Family.LEASES)) == bool(left)
    if state is ItemState.DEAD:
        died = [decode_dead(key[4:], value)[:2] for key, value in rig.dump()["dead"]]
        assert died == [(rig.now_ms, 1)] * len(runs)
    assert rig.stored_ids() == [ids[at] for at in left]
    assert rig.stats().contents_bytes == sum(len(CONTENTS[at]) for at in left)
    rig.assert_sound()


# --- cancel ---------------------------------------------------------------------------------------


@states
@pytest.mark.parametrize(
    "gone",
    [[3], [0], [6], [0, 6], [1, 3, 5], [5, 2, 3], [0, 1, 2], [4, 5, 6], [6, 5, 4, 3, 2, 1, 0]],
    ids=lambda gone: "".join(map(str, gone)),
)
def test_cancel_inside_a_run_leaves_both_sides_in_their_place(
    rig: Rig, state: ItemState, gone: list[int]
) -> None:
    ids = make(rig, state)
    assert_left(rig, state, ids, range(COUNT))

    cancelled = cancel(rig.engine, rig.queue, [ids[at] for at in gone], rig.now_ms)

    assert cancelled == [True] * len(gone)
    assert_left(rig, state, ids, [at for at in range(COUNT) if at not in gone])


@states
def test_cancel_again_and_again_cuts_what_was_cut_before(rig: Rig, state: ItemState) -> None:
    ids = make(rig, state)
    left = list(range(COUNT))
    for at in (3, 5, 0, 4, 6, 1, 2):
        assert cancel(rig.engine, rig.queue, [ids[at]], rig.now_ms) == [True]
        left.remove(at)
        assert_left(rig, state, ids, left)
        assert cancel(rig.engine, rig.queue, [ids[at]], rig.now_ms) == [False]


def test_cancel_inside_a_ready_run_is_seen_by_the_next_poll_with_and_without_memory(
    rig: Rig,
) -> None:
    ids = make(rig, ItemState.READY)
    cancel(rig.engine, rig.queue, [ids[0], ids[3]], rig.now_ms)
    first = rig.poll(2)
    rig.reopen()

    second = rig.poll(COUNT)

    assert (first.ids, first.contents) == (ids[1:3], CONTENTS[1:3])
    assert (second.ids, second.contents) == (ids[4:], CONTENTS[4:])
    rig.assert_sound()


def test_cancel_at_the_end_of_the_first_run_lowers_the_low_mark(rig: Rig) -> None:
    """The key of what is left is before the one that the mark was made of."""
    ids = rig.add(b"a", b"b", b"c")
    rig.add(b"d")
    assert rig.queue.counters.levels == {4: (4, due_part(rig.now_ms, ids[2]))}

    cancel(rig.engine, rig.queue, [ids[2]], rig.now_ms)

    assert rig.queue.counters.levels == {4: (3, due_part(rig.now_ms, ids[1]))}
    rig.reopen()
    rig.assert_sound()
    assert rig.poll(10).contents == [b"a", b"b", b"d"]


def test_cancel_of_runs_of_one_block_in_every_state_leaves_the_rest_of_each(rig: Rig) -> None:
    ids = rig.add(*[b"x"] * 12, delays_ms=[0] * 9 + [50] * 3)
    lease_id = rig.poll(6).lease_id
    allow_attempts(rig, 1)
    rig.fail(ids[:3], lease_id)
    middle = [ids[1], ids[4], ids[7], ids[10]]

    assert cancel(rig.engine, rig.queue, middle, rig.now_ms) == [True] * 4

    contents = [b"x"] * 12
    assert rig.runs(Family.DEAD) == parts_of(ids, contents, [0, 2], DIED)
    assert rig.runs(Family.LEASES) == parts_of(ids, contents, [3, 5])
    assert rig.runs(Family.VISIBILITY_INDEX) == parts_of(ids, contents, [6, 8])
    assert rig.runs(Family.DELAYED) == parts_of(ids, contents, [9, 11])
    assert rig.stored_ids() == [item_id for item_id in ids if item_id not in middle]
    assert [key[4:] for key in rig.keys(Family.ATTEMPTS)] == [ids[0], ids[2]]
    rig.assert_sound()


# --- purge and redrive ----------------------------------------------------------------------------


@states
@pytest.mark.parametrize("limit", [1, 3, 6, 7, 8])
def test_purge_with_a_limit_inside_a_run_leaves_its_end(
    rig: Rig, state: ItemState, limit: int
) -> None:
    ids = make(rig, state)

    left = list(range(COUNT))
    while left:
        gone, left = left[:limit], left[limit:]
        slice_ = purge(rig.engine, rig.queue, state, limit, rig.now_ms)
        assert slice_ == (len(gone), bool(left))
        assert_left(rig, state, ids, left)
    assert rig.stats().cancelled_total == COUNT


def test_redrive_first_with_a_limit_inside_a_run_revives_its_beginning(rig: Rig) -> None:
    ids = make(rig, ItemState.DEAD)
    died_at_ms = rig.now_ms
    rig.now_ms += 10

    assert redrive_first(rig.engine, rig.queue, 3, rig.now_ms) == (3, True)

    (revived,) = parts(ids, range(3))
    key = rig.queue.prefix + b"\4" + due_part(rig.now_ms, ids[2])
    assert rig.dump()["visibility_index"] == [(key, encode_run(revived))]
    assert [decode_dead(key[4:], value) for key, value in rig.dump()["dead"]] == [
        (died_at_ms, 1, *parts(ids, range(3, 7), DIED))
    ]
    assert [key[4:] for key in rig.keys(Family.ATTEMPTS)] == ids[3:]
    rig.assert_sound()
    assert redrive_first(rig.engine, rig.queue, 10, rig.now_ms) == (4, False)
    assert rig.poll(COUNT).contents == CONTENTS
    rig.assert_sound()


def test_redrive_of_some_of_a_run_leaves_the_others_dead(rig: Rig) -> None:
    ids = make(rig, ItemState.DEAD)

    assert redrive(rig.engine, rig.queue, [ids[5], ids[1], ids[2], ids[1]], rig.now_ms) == 3

    assert rig.runs(Family.VISIBILITY_INDEX) == parts(ids, [1, 2, 5])
    assert rig.runs(Family.DEAD) == parts(ids, [0, 3, 4, 6], DIED)
    rig.assert_sound()
