"""Reschedule: items that are ready or delayed become ready at another time."""

import pytest

from queueber.db.families import Family
from queueber.model import FailOutcome, ItemOptions, ItemState, NewItems, QueueSettings
from tests.engine.making import make_dead
from tests.support.operations import cancel, create_queue, find_item, reschedule
from tests.support.rig import Rig

LATER_MS = 80


def again(rig: Rig, ids: list[bytes], delay_ms: int = 0) -> list[bool]:
    return reschedule(rig.engine, rig.queue, ids, delay_ms, rig.now_ms)


def states(rig: Rig) -> tuple[int, int]:
    return rig.stats().ready, rig.stats().delayed


def pass_ms(rig: Rig, ms: int) -> None:
    rig.now_ms += ms
    rig.sweep_all()


@pytest.mark.parametrize("delay_ms", [0, 500])
def test_item_is_ready_after_the_new_delay_and_not_before(rig: Rig, delay_ms: int) -> None:
    (item_id,) = rig.add(b"a", delays_ms=[delay_ms])

    assert again(rig, [item_id], LATER_MS) == [True]

    assert states(rig) == (0, 1)
    pass_ms(rig, LATER_MS - 1)
    assert rig.poll().ids == []
    pass_ms(rig, 1)
    assert rig.poll().ids == [item_id]
    rig.assert_sound()


def test_run_now_makes_a_delayed_item_ready_behind_those_that_are(rig: Rig) -> None:
    (late,) = rig.add(b"late", delays_ms=[500])
    pass_ms(rig, 10)
    (first,) = rig.add(b"first")
    pass_ms(rig, 10)

    assert again(rig, [late]) == [True]

    assert rig.poll(2).ids == [first, late]
    rig.assert_sound()


def test_run_now_leaves_an_item_that_is_ready_in_its_place(rig: Rig) -> None:
    ids = rig.add(b"a", b"b")
    rig.now_ms += 10
    disk = rig.dump()

    assert again(rig, ids[:1]) == [True]

    assert rig.dump() == disk
    assert rig.poll(2).ids == ids


def test_item_that_waits_to_be_retried_keeps_its_attempts(rig: Rig) -> None:
    (item_id,) = rig.add(b"a")
    lease = rig.poll().lease_id
    assert rig.fail([item_id], lease) == [FailOutcome.RETRIED]
    assert states(rig) == (0, 1)

    assert again(rig, [item_id]) == [True]

    found = find_item(rig.engine, rig.queue, item_id).found
    assert found is not None
    assert (found.state, len(found.attempts)) == (ItemState.READY, 1)
    polled = rig.poll()
    assert (polled.ids, list(polled.details.attempts)) == ([item_id], [2])
    rig.assert_sound()


@pytest.mark.parametrize("delay_ms", [0, LATER_MS])
def test_item_of_a_run_leaves_its_neighbours_as_they_were(rig: Rig, delay_ms: int) -> None:
    ids = rig.add(*[b"x"] * 5, delays_ms=[500] * 5)

    assert again(rig, [ids[1], ids[2], ids[4]], delay_ms) == [True] * 3

    rig.assert_sound()
    pass_ms(rig, delay_ms)
    assert rig.poll(9).ids == [ids[1], ids[2], ids[4]]
    pass_ms(rig, 500 - delay_ms)
    assert rig.poll(9).ids == [ids[0], ids[3]]
    rig.assert_sound()


def test_item_can_be_moved_again_and_again(rig: Rig) -> None:
    """Also to the time that it has, and to the one in its id."""
    ids = rig.add(b"a", b"b")

    for delay_ms in (LATER_MS, LATER_MS, 2 * LATER_MS, 1, 0, 0, LATER_MS):
        assert again(rig, ids[1:], delay_ms) == [True]
        rig.assert_sound()

    rig.reopen()
    rig.assert_sound()
    rig.now_ms -= 5
    assert again(rig, ids[1:], 5) == [True]
    assert rig.keys(Family.PLACES) == []
    rig.assert_sound()


def test_item_in_any_other_state_is_left_as_it_was(rig: Rig) -> None:
    (dead,) = make_dead(rig, NewItems([b"dead"]))
    gone, held = rig.add(b"gone", b"held")
    cancel(rig.engine, rig.queue, [gone], rig.now_ms)
    rig.poll()
    create_queue(rig.engine, "other", QueueSettings(), rig.now_ms)
    (elsewhere,) = rig.add(b"a")
    asked = [dead, gone, held, bytes(16)]
    disk, memory = rig.dump(), rig.memory()

    for delay_ms in (0, LATER_MS):
        assert again(rig, asked, delay_ms) == [False] * 4
    other = rig.engine.queues.get("other")
    assert reschedule(rig.engine, other, [elsewhere], LATER_MS, rig.now_ms) == [False]

    assert (rig.dump(), rig.memory()) == (disk, memory)


def test_each_id_is_answered_also_one_that_is_named_twice(rig: Rig) -> None:
    first, second = rig.add(b"a", b"b", delays_ms=[500, 0])

    answers = again(rig, [first, bytes(16), second, first], LATER_MS)

    assert answers == [True, False, True, True]
    assert states(rig) == (0, 2)
    rig.assert_sound()


@pytest.mark.parametrize("delay_ms", [0, LATER_MS])
def test_item_that_waits_for_others_goes_on_to_wait(rig: Rig, delay_ms: int) -> None:
    (first,) = rig.add(b"first")
    items = NewItems([b"second"])
    items.after = [first]
    (second,) = rig.add_items(items).ids
    disk = rig.dump()

    assert again(rig, [second], delay_ms) == [False]

    assert rig.dump() == disk
    rig.assert_sound()


@pytest.mark.parametrize("state", ["ready", "delayed"])
def test_item_is_not_rescheduled_to_when_it_expires_or_later(rig: Rig, state: str) -> None:
    expires = [ItemOptions(expires_ms=100), ItemOptions(expires_ms=101)]
    delays_ms = [50, 50] if state == "delayed" else []
    early, late = rig.add_items(NewItems([b"a", b"b"], delays_ms, options=expires)).ids

    assert again(rig, [early, late], 100) == [False, True]

    assert states(rig) == ((1, 1) if state == "ready" else (0, 2))
    rig.assert_sound()
    pass_ms(rig, 100)
    assert rig.poll(2).ids == [late]
    assert rig.stats().dead == 1
    rig.assert_sound()


def test_item_that_has_expired_already_does_not_run_now(rig: Rig) -> None:
    options = [ItemOptions(expires_ms=10)]
    (item_id,) = rig.add_items(NewItems([b"a"], [5], options=options)).ids
    rig.now_ms += 10

    assert again(rig, [item_id]) == [False]

    rig.assert_sound()


def test_item_that_was_parked_or_let_go_gives_its_place_to_another() -> None:
    rig = Rig(QueueSettings(cap_by="who", cap_by_concurrency_max=1))
    who = [{"who": "x"}] * 4
    ids = rig.add_items(NewItems([b"1", b"2", b"3", b"4"], attributes=who)).ids
    held = rig.poll(4)
    assert held.ids == ids[:1]
    assert rig.stats().parked == 3

    assert again(rig, list(ids[1:2]), LATER_MS) == [True]
    rig.assert_sound()
    assert rig.complete(held.ids, held.lease_id) == [True]
    assert again(rig, list(ids[2:3]), LATER_MS) == [True]
    rig.assert_sound()

    assert (rig.stats().parked, states(rig)) == (0, (1, 2))
    held = rig.poll(4)
    assert held.ids == ids[3:]
    assert rig.complete(held.ids, held.lease_id) == [True]
    pass_ms(rig, LATER_MS)
    assert rig.poll(4).ids == ids[1:2]
    assert rig.stats().parked == 1
    rig.assert_sound()
    rig.close()
