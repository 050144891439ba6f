"""Peek: every item as it stands, a page at a time, and nothing changes."""

import pytest

from queueber.db.records.keys import NEVER_MS
from queueber.engine.queue.lifecycle import DeathReason
from queueber.limits import ITEM_WIRE_BYTES, MIB
from queueber.model import ItemInfo, ItemState, NewItems
from tests.engine.making import allow_attempts, come_back_at_once, make_dead
from tests.support.operations import cancel, pause, peek
from tests.support.rig import START_MS, Rig

states = pytest.mark.parametrize("state", ItemState, ids=lambda state: state.name)


def look(rig: Rig, state: ItemState) -> list[ItemInfo]:
    page, more = peek(rig.engine, rig.queue, state, b"", 1000, MIB)
    assert more == b""
    return page


def pages(rig: Rig, state: ItemState, limit: int, bytes_max: int = MIB) -> list[list[bytes]]:
    found, after = [], b""
    while True:
        page, after = peek(rig.engine, rig.queue, state, after, limit, bytes_max)
        found.append([each.id for each in page])
        if not after:
            return found


def fill(rig: Rig, count: int) -> dict[ItemState, list[bytes]]:
    """Items of each state, in the order in which they are shown."""
    dead = make_dead(rig, NewItems([b"x"] * count))
    held = rig.add(*[b"x"] * count)
    rig.poll_many([1] * count)
    delayed = rig.add(*[b"x"] * count, delays_ms=[1000 - n for n in range(count)])
    low = list(rig.add_items(NewItems([b"x"] * count, priorities=[1] * count)).ids)
    rig.now_ms += 1
    high = list(rig.add_items(NewItems([b"x"] * count, priorities=[8] * count)).ids)
    return {
        ItemState.READY: high + low,
        ItemState.DELAYED: delayed[::-1],
        ItemState.LEASED: held,
        ItemState.DEAD: dead,
    }


# --- what is seen ---------------------------------------------------------------------------------


def test_peek_shows_all_that_a_ready_item_carries(rig: Rig) -> None:
    (item_id,) = rig.add_items(
        NewItems([b"work"], priorities=[7], keys=["k"], attributes=[{"a": "b"}], batch="b")
    ).ids

    assert look(rig, ItemState.READY) == [
        ItemInfo(
            item_id, b"work", START_MS, "k", {"a": "b"}, "b", 7, 0, 0, START_MS, attempt_times_ms=[]
        )
    ]


def test_peek_of_a_delayed_item_says_until_when_and_why(rig: Rig) -> None:
    (item_id,) = rig.add(b"work")
    polled = rig.poll()
    rig.now_ms += 10
    rig.fail([item_id], polled.lease_id, "broken", delay_ms=90)

    assert look(rig, ItemState.DELAYED) == [
        ItemInfo(
            item_id,
            b"work",
            START_MS,
            "",
            {},
            "",
            5,
            1,
            0,
            START_MS + 100,
            last_error="broken",
            attempt_times_ms=[START_MS + 10],
            deliveries=1,
        )
    ]


def test_peek_of_an_item_in_progress_says_under_which_lease_and_until_when(rig: Rig) -> None:
    ids = rig.add(b"a", b"b")
    polled = rig.poll(2, lease_ms=300)

    assert look(rig, ItemState.LEASED) == [
        ItemInfo(
            each,
            contents,
            START_MS,
            "",
            {},
            "",
            5,
            0,
            0,
            START_MS + 300,
            polled.lease_id,
            attempt_times_ms=[],
            deliveries=1,
        )
        for each, contents in zip(ids, [b"a", b"b"], strict=True)
    ]


@pytest.mark.parametrize(
    "reason", [DeathReason.FAILED, DeathReason.EXPIRED], ids=lambda reason: reason.name
)
def test_peek_of_a_dead_letter_says_when_and_why_it_died(rig: Rig, reason: DeathReason) -> None:
    allow_attempts(rig, 2)
    (item_id,) = rig.add(b"work")
    polled = rig.poll()
    rig.fail([item_id], polled.lease_id, "first", delay_ms=0)
    polled = rig.poll(lease_ms=10)
    if reason is DeathReason.FAILED:
        rig.now_ms += 10 - 1
        rig.fail([item_id], polled.lease_id, "last")
    else:
        rig.now_ms += 10
        rig.sweep_all()

    (seen,) = look(rig, ItemState.DEAD)

    error = "last" if reason is DeathReason.FAILED else "the lease ran out"
    assert (seen.at_ms, seen.reason, seen.last_error) == (rig.now_ms, reason.text(2), error)
    assert (seen.attempts, seen.attempt_times_ms) == (2, [START_MS, rig.now_ms])


def test_peek_of_suspects_says_how_many_may_go_together(rig: Rig) -> None:
    rig.add(*[b"x"] * 10)
    rig.poll(10, lease_ms=10)
    rig.now_ms += 10
    rig.sweep_all()

    assert [seen.group_max for seen in look(rig, ItemState.READY)] == [5] * 10


# --- pages ----------------------------------------------------------------------------------------


@states
@pytest.mark.parametrize("limit", [1, 2, 3, 7, 100])
def test_peek_page_by_page_shows_each_item_once_and_in_order(
    rig: Rig, state: ItemState, limit: int
) -> None:
    expected = fill(rig, 5)[state]

    found = pages(rig, state, limit)

    assert [item_id for page in found for item_id in page] == expected
    assert all(len(page) == limit for page in found[:-1])
    assert found[-1]


@states
def test_peek_after_an_item_that_is_gone_goes_on_behind_it(rig: Rig, state: ItemState) -> None:
    expected = fill(rig, 5)[state]
    page, after = peek(rig.engine, rig.queue, state, b"", 2, MIB)
    assert all(cancel(rig.engine, rig.queue, [seen.id for seen in page], rig.now_ms))

    rest, _ = peek(rig.engine, rig.queue, state, after, 100, MIB)

    assert [seen.id for seen in page + rest] == expected


@states
def test_peek_of_a_state_without_items_is_an_empty_page(rig: Rig, state: ItemState) -> None:
    assert peek(rig.engine, rig.queue, state, b"", 10, MIB) == ([], b"")


@states
def test_peek_stays_below_its_bytes_but_shows_at_least_one(rig: Rig, state: ItemState) -> None:
    expected = fill(rig, 5)[state]

    found = pages(rig, state, 100, bytes_max=1)

    assert found == [[item_id] for item_id in expected]


def test_peek_counts_contents_and_what_an_item_takes_on_the_wire(rig: Rig) -> None:
    rig.add(*[b"x" * 100] * 5)
    cost = 100 + ITEM_WIRE_BYTES

    assert [len(page) for page in pages(rig, ItemState.READY, 100, 2 * cost)] == [2, 2, 1]
    assert [len(page) for page in pages(rig, ItemState.READY, 100, 2 * cost - 1)] == [1] * 5


# --- nothing changes ------------------------------------------------------------------------------


@states
def test_peek_changes_nothing(rig: Rig, state: ItemState) -> None:
    fill(rig, 3)
    disk, memory = rig.dump(), rig.memory()

    pages(rig, state, 2)

    assert rig.dump() == disk
    assert rig.memory() == memory


def test_peek_into_a_paused_queue_shows_its_items(rig: Rig) -> None:
    ids = rig.add(b"a")
    pause(rig.engine, rig.queue, NEVER_MS)

    assert [seen.id for seen in look(rig, ItemState.READY)] == ids


def test_peek_at_an_expired_lease_shows_its_items_until_the_sweep(rig: Rig) -> None:
    come_back_at_once(rig)
    ids = rig.add(b"a")
    rig.poll(lease_ms=10)
    rig.now_ms += 20
    assert [seen.id for seen in look(rig, ItemState.LEASED)] == ids

    rig.sweep_all()

    assert look(rig, ItemState.LEASED) == []
    assert [seen.id for seen in look(rig, ItemState.READY)] == ids
