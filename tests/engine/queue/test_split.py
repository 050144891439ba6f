"""Split: the ranges of a state have every item once, are about equal, and cost a bounded search."""

from contextlib import closing
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from queueber.db.families import Family
from queueber.engine.queue.peek import look
from queueber.engine.queue.queue_state import View, live_view, take_view
from queueber.engine.queue.split import split
from queueber.ids import ItemId
from queueber.limits import MIB, SPLIT_SEEKS_MAX
from queueber.model import ItemState, NewItems
from tests.engine.making import make_dead, make_dead_run, make_quarantined
from tests.support.entries import LOWEST_DUE
from tests.support.rig import Rig

LINE = b"x"
FAMILIES = {
    ItemState.READY: Family.VISIBILITY_INDEX,
    ItemState.DELAYED: Family.DELAYED,
    ItemState.DEAD: Family.DEAD,
}


def ranges_of(view: View, state: ItemState, parts: int) -> list[list[bytes]]:
    """The ids of each range, in order."""
    found = []
    for after, before in pairwise([b"", *split(view, state, parts), b""]):
        ids: list[bytes] = []
        at = after
        while True:
            page, at = look(view, state, at, 100, MIB, before=before)
            ids += [each.id for each in page]
            if not at:
                break
        found.append(ids)
    return found


def all_of(view: View, state: ItemState) -> list[bytes]:
    page, more = look(view, state, b"", 100_000, 100 * MIB)
    assert not more
    return [each.id for each in page]


calls = st.lists(
    st.tuples(
        st.integers(1, 40),  # items
        st.integers(0, 9),  # priority
        st.sampled_from([0, 0, 1, 1000, 10**9]),  # delay
        st.sampled_from([0, 1, 5, 10**6, 10**10]),  # time until the next call
    ),
    min_size=1,
    max_size=12,
)


@settings(max_examples=100, deadline=None)
@given(
    adds=calls,
    polled=st.lists(st.integers(1, 20), max_size=8),
    dead=st.integers(0, 40),
    quarantined=st.integers(0, 20),
    parts=st.one_of(st.integers(1, 20), st.just(10_000)),
    has_low_marks=st.booleans(),
)
def test_ranges_have_every_item_of_a_state_once_and_in_order(
    adds: list[tuple[int, int, int, int]],
    polled: list[int],
    dead: int,
    quarantined: int,
    parts: int,
    has_low_marks: bool,
) -> None:
    with closing(Rig()) as rig:
        if dead:
            make_dead(rig, NewItems([LINE] * dead))
            make_dead_run(rig, NewItems([LINE] * dead))
        if quarantined > 1:
            make_quarantined(rig, quarantined)
        for count, priority, delay_ms, pause_ms in adds:
            columns = NewItems([LINE] * count, [delay_ms] * count, [priority] * count)
            rig.add_items(columns)
            rig.now_ms += pause_ms
        if polled:
            rig.poll_many(polled, lease_ms=10**9)
        view, snapshot = take_view(rig.store, rig.queue)
        if not has_low_marks:
            counters = view.counters.copy()
            counters.levels = {
                at: (count, LOWEST_DUE) for at, (count, _) in counters.levels.items()
            }
            view = replace(view, counters=counters, dead_low=ItemId(b""))

        for state in ItemState:
            ranges = ranges_of(view, state, parts)
            assert [item_id for each in ranges for item_id in each] == all_of(view, state)
            assert len(ranges) <= parts
            assert all(ranges) or len(ranges) == 1
        snapshot.close()


@pytest.mark.parametrize("state", ItemState, ids=lambda state: state.name)
def test_empty_queue_has_one_empty_range(rig: Rig, state: ItemState) -> None:
    assert split(live_view(rig.store, rig.queue), state, 10) == []


def test_ranges_of_items_that_came_at_an_even_pace_are_about_equal(rig: Rig) -> None:
    for _ in range(400):
        rig.add(*[LINE] * 5)
        rig.now_ms += 7

    sizes = [len(each) for each in ranges_of(live_view(rig.store, rig.queue), ItemState.READY, 8)]

    assert len(sizes) == 8
    assert max(sizes) < 2 * min(sizes)


def test_ranges_follow_the_number_of_items_at_each_priority(rig: Rig) -> None:
    for _ in range(100):
        rig.add_items(NewItems([LINE] * 9, priorities=[9] * 9))
        rig.add_items(NewItems([LINE], priorities=[1]))
        rig.now_ms += 1

    ranges = ranges_of(live_view(rig.store, rig.queue), ItemState.READY, 10)

    assert [len(each) for each in ranges][-1] <= 200
    assert len(ranges) >= 8


def test_split_of_any_size_seeks_a_bounded_number_of_times(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    for priority in range(10):
        for _ in range(20):
            rig.add_items(NewItems([LINE] * 5, priorities=[priority] * 5))
            rig.now_ms += 10**6
    view = live_view(rig.store, rig.queue)
    seeks = 0

    def counted(*args: Any) -> Any:
        nonlocal seeks
        seeks += 1
        return scan(*args)

    scan = view.reads.scan
    monkeypatch.setattr(view.reads, "scan", counted)

    split(view, ItemState.READY, 10_000)
    assert seeks <= SPLIT_SEEKS_MAX
    seeks = 0
    split(view, ItemState.READY, 16)
    assert seeks <= 1000  # each priority has a last key to be found


def test_one_early_item_does_not_put_all_others_into_one_range(rig: Rig) -> None:
    rig.add(LINE)
    rig.now_ms += 10**10
    rig.add(*[LINE] * 2000)  # of one millisecond

    sizes = [len(each) for each in ranges_of(live_view(rig.store, rig.queue), ItemState.READY, 8)]

    assert len(sizes) >= 6
    assert max(sizes) <= 2 * 2000 // 8


@pytest.mark.parametrize("state", [ItemState.READY, ItemState.DELAYED, ItemState.DEAD])
def test_ranges_of_a_few_long_runs_are_cut_inside_them(rig: Rig, state: ItemState) -> None:
    if state is ItemState.DEAD:
        make_dead_run(rig, NewItems([LINE] * 1000))
    else:
        delay_ms = 50 if state is ItemState.DELAYED else 0
        rig.add(*[LINE] * 1000, delays_ms=[delay_ms] * 1000)
    assert len(rig.keys(FAMILIES[state])) == 2

    sizes = [len(each) for each in ranges_of(live_view(rig.store, rig.queue), state, 8)]

    assert (len(sizes), sum(sizes)) == (8, 1000)
    assert max(sizes) < 2 * min(sizes)
