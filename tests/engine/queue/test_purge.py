"""Purge: all items of a state go, a slice at a time, and no others."""

import pytest

from queueber.db.families import Family
from queueber.limits import READY_WINDOW_ENTRIES
from queueber.model import ItemState, NewItems
from tests.engine.making import add_runs, make_dead
from tests.support.operations import purge, receipt
from tests.support.rig import Rig

FAMILIES = {
    ItemState.READY: Family.VISIBILITY_INDEX,
    ItemState.DELAYED: Family.DELAYED,
    ItemState.LEASED: Family.LEASES,
    ItemState.DEAD: Family.DEAD,
}
states = pytest.mark.parametrize("state", ItemState, ids=lambda state: state.name)


def fill(rig: Rig, count: int, batch: str = "") -> None:
    """As many items of each state."""
    make_dead(rig, NewItems([b"dead"] * count, batch=batch))
    rig.add_items(NewItems([b"held"] * count, batch=batch))
    rig.poll_many([1, count - 1] if count > 1 else [1])
    rig.add_items(
        NewItems([b"x"] * 2 * count, [0] * count + [70 + n for n in range(count)], batch=batch)
    )


def ids_of(rig: Rig, state: ItemState) -> list[bytes]:
    """The items of a state, in its order."""
    return rig.ids(FAMILIES[state])


def purge_all(rig: Rig, state: ItemState, limit: int) -> list[tuple[int, bool]]:
    slices = []
    while (slice_ := purge(rig.engine, rig.queue, state, limit, rig.now_ms))[0]:
        slices.append(slice_)
        rig.assert_sound()
        assert len(slices) < 100
    return slices


@states
def test_purge_in_slices_takes_all_of_the_state_and_no_others(rig: Rig, state: ItemState) -> None:
    fill(rig, 25)
    before = {each: ids_of(rig, each) for each in ItemState}

    assert purge_all(rig, state, 10) == [(10, True), (10, True), (5, False)]

    assert {each: ids_of(rig, each) for each in ItemState} == {**before, state: []}
    assert rig.stored_ids() == sorted(id_ for each in ItemState for id_ in ids_of(rig, each))
    assert len(rig.stored_ids()) == 75
    assert rig.stats().cancelled_total == 25
    if state is ItemState.LEASED:
        assert rig.keys(Family.LEASES) == rig.keys(Family.LEASE_EXPIRY) == []
        assert rig.keys(Family.HOLDERS) == []
    rig.reopen()
    rig.assert_sound()


@states
def test_purge_takes_the_first_in_the_order_of_the_state(rig: Rig, state: ItemState) -> None:
    fill(rig, 4)
    before = ids_of(rig, state)

    assert purge(rig.engine, rig.queue, state, 3, rig.now_ms) == (3, True)

    assert ids_of(rig, state) == before[3:]
    rig.assert_sound()


@states
def test_purge_of_nothing_changes_nothing(rig: Rig, state: ItemState) -> None:
    fill(rig, 1)
    purge(rig.engine, rig.queue, state, 10, rig.now_ms)
    disk, memory = rig.dump(), rig.memory()

    assert purge(rig.engine, rig.queue, state, 10, rig.now_ms) == (0, False)

    assert rig.dump() == disk
    assert rig.memory() == memory


@states
def test_purge_counts_as_dead_in_the_batch_once(rig: Rig, state: ItemState) -> None:
    fill(rig, 2, batch="b")

    purge_all(rig, state, 10)

    found = receipt(rig.engine, rig.queue, "b")
    dead, live = (2, 6) if state is ItemState.DEAD else (4, 4)
    assert (found.added, found.done, found.dead, found.live) == (8, 0, dead, live)


def test_purge_of_everything_empties_the_queue_and_ends_the_batch(rig: Rig) -> None:
    fill(rig, 3, batch="b")

    for state in ItemState:
        purge_all(rig, state, 2)

    assert rig.keys(Family.ITEMS) == rig.keys(Family.ATTEMPTS) == rig.keys(Family.PLACES) == []
    assert receipt(rig.engine, rig.queue, "b").complete
    assert rig.queue.batches.finished == {"b"}
    rig.add(b"new")
    assert rig.poll().contents == [b"new"]


def test_purge_of_ready_items_of_several_priorities_says_that_there_are_more(rig: Rig) -> None:
    """A slice ends with its level."""
    rig.add_items(NewItems([b"x"] * 6, priorities=[9, 0, 9, 0, 5, 5]))

    assert purge_all(rig, ItemState.READY, 10) == [(2, True), (2, True), (2, False)]

    assert rig.ready_ids() == []


def test_purge_of_more_than_a_window_goes_on_to_the_last(rig: Rig) -> None:
    count = READY_WINDOW_ENTRIES + 300
    add_runs(rig, [b""] * count)
    rig.reopen()

    slices = purge_all(rig, ItemState.READY, 1000)

    assert slices == [(1000, True), (count - 1000, False)]


def test_purge_of_delayed_items_is_swept_without_harm(rig: Rig) -> None:
    rig.add(b"a", b"b", b"c", delays_ms=[10, 20, 5000])
    purge(rig.engine, rig.queue, ItemState.DELAYED, 2, rig.now_ms)

    rig.now_ms += 30
    rig.sweep_all()

    assert rig.stats().delayed == 1
    assert rig.engine.agenda.next_ms() == rig.now_ms + 4970
    rig.assert_sound()


def test_purge_of_expired_leases_not_yet_swept_takes_their_items(rig: Rig) -> None:
    rig.add(b"a")
    rig.poll(lease_ms=10)
    rig.now_ms += 10

    assert purge(rig.engine, rig.queue, ItemState.LEASED, 10, rig.now_ms) == (1, False)

    rig.sweep_all()
    assert rig.keys(Family.ITEMS) == []
    rig.assert_sound()
