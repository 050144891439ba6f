"""Dead letters: found in order of id, from where the last walk stopped."""

from hypothesis import given, settings
from hypothesis import strategies as st

from queueber.db.families import Family
from queueber.db.records.keys import HeldItem
from queueber.ids import ItemId
from queueber.model import ItemState, NewItems
from tests.engine.making import allow_attempts, make_dead, mark_of
from tests.support.operations import purge, redrive_first, run
from tests.support.rig import Rig


def ids_of(letters: list[HeldItem]) -> list[ItemId]:
    return [item_id for item_id, _ in letters]


def test_first_dead_gives_ids_and_marks_in_order_up_to_the_limit(rig: Rig) -> None:
    dead = make_dead(rig, NewItems([b"a", b"bb", b"ccc"]))

    letters = rig.queue.dead_letters.first(2)

    assert ids_of(letters) == dead[:2]
    assert [mark[:4] for _, mark in letters] == [b"\0\0\0\1", b"\0\0\0\2"]
    assert mark_of(rig, dead[0]).attempts == 1
    assert ids_of(rig.queue.dead_letters.first(100)) == dead


def test_first_dead_of_a_queue_without_any_is_nothing(rig: Rig) -> None:
    rig.add(b"a")

    assert rig.queue.dead_letters.first(10) == []


def test_drop_dead_takes_letters_out_and_leaves_their_items_to_the_caller(rig: Rig) -> None:
    dead = make_dead(rig, NewItems([b"a", b"b"]))
    letters = rig.queue.dead_letters.first(1)

    run(rig.engine, rig.queue, rig.now_ms, rig.queue.dead_letters.drop, letters)

    assert [key[4:] for key in rig.keys(Family.DEAD)] == dead[1:]
    assert len(rig.keys(Family.ITEMS)) == 2
    assert rig.stats().dead == 1


@settings(max_examples=25, deadline=None)
@given(
    steps=st.lists(
        st.sampled_from(["add and die", "hold", "held one dies", "redrive", "purge", "reopen"]),
        max_size=14,
    )
)
def test_first_dead_through_any_steps_finds_every_dead_letter(steps: list[str]) -> None:
    """Whatever was walked before: none lies below where a walk begins."""
    rig = Rig()
    try:
        held = []
        for step in steps:
            if step == "add and die" and not rig.queue.counters.ready:
                make_dead(rig, NewItems([b"x", b"y"]))
            elif step == "hold":
                rig.add(b"held")
                held.append(rig.poll(lease_ms=60_000))
            elif step == "held one dies" and held:
                polled = held.pop(0)
                allow_attempts(rig, 1)
                rig.fail(polled.ids, polled.lease_id)
                allow_attempts(rig, 20)
            elif step == "redrive":
                redrive_first(rig.engine, rig.queue, 1, rig.now_ms)
            elif step == "purge":
                purge(rig.engine, rig.queue, ItemState.DEAD, 1, rig.now_ms)
            elif step == "reopen":
                rig.reopen()

            found = ids_of(rig.queue.dead_letters.first(100))
            assert found == [key[4:] for key in rig.keys(Family.DEAD)]
        rig.assert_sound()
    finally:
        rig.close()
