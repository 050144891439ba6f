"""Peek: pages begin and end inside runs, in every state, wherever a cursor points."""

from collections.abc import Sequence
from contextlib import closing

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from queueber.db.families import Family
from queueber.engine.queue.peek import look
from queueber.limits import ITEM_WIRE_BYTES, MIB
from queueber.model import ItemInfo, ItemState, NewItems
from tests.engine.making import make_dead_run
from tests.support.operations import cancel, live_view, peek
from tests.support.rig import Rig

FAMILIES = {
    ItemState.READY: Family.VISIBILITY_INDEX,
    ItemState.DELAYED: Family.DELAYED,
    ItemState.LEASED: Family.LEASES,
    ItemState.DEAD: Family.DEAD,
}
states = pytest.mark.parametrize("state", ItemState, ids=lambda state: state.name)


def fill(rig: Rig) -> dict[ItemState, list[tuple[bytes, bytes]]]:
    """Ids and contents of each state, in the order in which they are shown: several blocks and
    runs of each, some of them cut."""
    contents = iter([b"%d" % n for n in range(10_000)])

    def new(count: int) -> list[bytes]:
        return [next(contents) for _ in range(count)]

    made: dict[ItemState, list[tuple[bytes, bytes]]] = {state: [] for state in ItemState}

    def note(state: ItemState, ids: Sequence[bytes], values: Sequence[bytes]) -> None:
        made[state] += zip(ids, values, strict=True)

    for count in (5, 1, 7):
        values = new(count)
        note(ItemState.DEAD, make_dead_run(rig, NewItems(values)), values)
    for count in (9, 8):
        values = new(count)
        ids = rig.add(*values)
        note(ItemState.LEASED, ids, values)
    rig.poll_many([2, 9, 6])
    for delay_ms in (500, 300):
        values = new(12)
        ids = rig.add(*values, delays_ms=[delay_ms] * 4 + [400] * 4 + [delay_ms] * 4)
        note(ItemState.DELAYED, ids, values)
    made[ItemState.DELAYED].sort(key=lambda each: (delay_of(rig, each[0]), each[0]))
    for priority in (9, 5):
        for count in (5, 8):
            values = new(count)
            items = NewItems(values, priorities=[priority] * count)
            note(ItemState.READY, rig.add_items(items).ids, values)
            rig.now_ms += 1
    for state, at in ((s, n) for s in ItemState for n in (3, 7)):
        (item_id, _) = made[state][at]
        assert cancel(rig.engine, rig.queue, [item_id], rig.now_ms) == [True]
    for state in ItemState:
        made[state] = [each for at, each in enumerate(made[state]) if at not in (3, 7)]
    rig.assert_sound()
    return made


def delay_of(rig: Rig, item_id: bytes) -> int:
    (at_ms,) = [
        int.from_bytes(key[4:12])
        for key, run in zip(rig.keys(Family.DELAYED), rig.runs(Family.DELAYED), strict=True)
        if item_id in run.ids
    ]
    return at_ms


def seen(page: Sequence[ItemInfo]) -> list[tuple[bytes, bytes]]:
    return [(each.id, each.contents) for each in page]


def pages(
    rig: Rig, state: ItemState, limit: int, bytes_max: int = MIB
) -> list[list[tuple[bytes, bytes]]]:
    found, after = [], b""
    while True:
        page, after = peek(rig.engine, rig.queue, state, after, limit, bytes_max)
        found.append(seen(page))
        if not after:
            return found


def cursors(rig: Rig, state: ItemState) -> list[bytes]:
    """The cursor after each item but the last."""
    found: list[bytes] = []
    after = b""
    while True:
        _, after = peek(rig.engine, rig.queue, state, after, 1, MIB)
        if not after:
            return found
        found.append(after)


@states
def test_runs_of_several_items_are_what_is_paged(rig: Rig, state: ItemState) -> None:
    """Else the tests below would say nothing."""
    made = fill(rig)

    runs = rig.runs(FAMILIES[state])

    assert sum(run.count for run in runs) == len(made[state]) > 7
    assert max(run.count for run in runs) >= 3
    assert len({run.block for run in runs}) >= 2
    assert len(runs) >= 4


@states
@pytest.mark.parametrize("limit", [1, 2, 3, 4, 5, 100])
def test_pages_that_begin_and_end_inside_runs_have_every_item_once(
    rig: Rig, state: ItemState, limit: int
) -> None:
    made = fill(rig)[state]

    assert pages(rig, state, limit) == [
        made[start : start + limit] for start in range(0, len(made), limit)
    ]


@states
def test_pages_end_inside_a_run_where_the_bytes_end(rig: Rig, state: ItemState) -> None:
    made = fill(rig)[state]
    room = 3 * (ITEM_WIRE_BYTES + 60)

    found = pages(rig, state, 100, bytes_max=room)

    assert [each for page in found for each in page] == made
    assert {len(page) for page in found[:-1]} <= {1, 2, 3, 4, 5}
    assert max(len(page) for page in found) > 1


@states
def test_range_between_any_two_cursors_has_the_items_between_them(
    rig: Rig, state: ItemState
) -> None:
    made = fill(rig)[state]
    marks = [b"", *cursors(rig, state), b""]
    assert len(marks) == len(made) + 1
    view = live_view(rig.engine, rig.queue)

    for start, after in enumerate(marks[:-1]):
        for stop, before in enumerate(marks[start + 1 :], start + 1):
            page, more = look(view, state, after, 100, MIB, before=before)
            assert (seen(page), more) == (made[start:stop], b"")


@states
def test_cursor_after_an_item_that_is_gone_by_now_goes_on_behind_it(
    rig: Rig, state: ItemState
) -> None:
    made = fill(rig)[state]
    after = cursors(rig, state)
    for at in (1, 4):
        cancel(rig.engine, rig.queue, [made[at][0]], rig.now_ms)

    for at in (1, 4):
        page, _ = peek(rig.engine, rig.queue, state, after[at], 100, MIB)
        assert seen(page) == [each for n, each in enumerate(made) if n > at and n not in (1, 4)]


@states
def test_cursor_in_the_beginning_of_a_run_that_was_cut_meanwhile_goes_on_in_its_rest(
    rig: Rig, state: ItemState
) -> None:
    """The key of the run has changed, the cursor has not."""
    made = fill(rig)[state]
    after = cursors(rig, state)
    (first_run, *_) = sorted(rig.runs(FAMILIES[state]), key=lambda run: -run.count)
    positions = [at for at, (item_id, _) in enumerate(made) if item_id in first_run.ids]
    gone = positions[-1]

    cancel(rig.engine, rig.queue, [made[gone][0]], rig.now_ms)

    page, _ = peek(rig.engine, rig.queue, state, after[positions[0]], 100, MIB)
    assert seen(page) == [each for n, each in enumerate(made) if n > positions[0] and n != gone]


@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_pages_of_a_batch_have_its_items_and_no_others(data: st.DataObject) -> None:
    with closing(Rig()) as rig:
        of_batch: list[bytes] = []
        for _ in range(data.draw(st.integers(1, 5))):
            batch = data.draw(st.sampled_from(["", "a", "b"]))
            count = data.draw(st.integers(1, 9))
            ids = rig.add_items(NewItems([b"x"] * count, batch=batch)).ids
            of_batch += ids if batch == "a" else []
        limit = data.draw(st.integers(1, 6))
        found: list[bytes] = []
        after = b""
        while True:
            view = live_view(rig.engine, rig.queue)
            page, after = look(view, ItemState.READY, after, limit, MIB, batch="a")
            found += [each.id for each in page]
            assert len(page) <= limit
            if not after:
                break

        assert found == of_batch
