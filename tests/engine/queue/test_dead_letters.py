"""Dead letters: found in order of id, from where the last walk stopped."""

from hypothesis import given, settings
from hypothesis import strategies as st

from queueber.db.families import Family
from queueber.db.records.dead_letters import decode_dead
from queueber.db.records.runs import (
    MarkFields,
    Run,
)
from queueber.limits import MIB
from queueber.model import ItemState, NewItems
from tests.engine.making import allow_attempts, make_dead, make_dead_run, run_of
from tests.support.operations import peek, purge, redrive_first, run
from tests.support.rig import Rig

DIED = MarkFields(attempts=1)


def take_first(rig: Rig, limit: int) -> list[Run]:
    """What was taken; it is nowhere then, so the store is not sound."""
    return run(rig.engine, rig.queue, rig.now_ms, rig.queue.dead_letters.take_first, limit)


def test_take_first_takes_letters_in_order_up_to_the_limit(rig: Rig) -> None:
    dead = make_dead(rig, NewItems([b"a", b"bb", b"ccc"]))

    assert take_first(rig, 2) == [
        run_of(dead[:1], 1, DIED, span=3),
        run_of(dead[1:2], 2, DIED, at=1, span=3),
    ]

    assert rig.runs(Family.DEAD) == [run_of(dead[2:], 3, DIED, at=2)]
    assert rig.stats().dead == 1
    assert rig.stored_ids() == dead, "where the items go is up to the caller"


def test_take_first_with_a_limit_inside_a_run_leaves_the_rest_as_it_died(rig: Rig) -> None:
    dead = make_dead_run(rig, NewItems([b"a", b"bb", b"ccc"]))
    died_at_ms = rig.now_ms
    rig.now_ms += 10

    assert take_first(rig, 2) == [run_of(dead[:2], 3, DIED, span=3)]

    ((key, value),) = rig.dump()["dead"]
    rest = run_of(dead[2:], 3, DIED, at=2)
    assert decode_dead(key[4:], value) == (died_at_ms, 1, rest)
    assert rig.stats().dead == 1
    assert take_first(rig, 2) == [rest]
    assert take_first(rig, 2) == []


def test_take_first_of_a_queue_without_any_is_nothing(rig: Rig) -> None:
    rig.add(b"a")
    disk, memory = rig.dump(), rig.memory()

    assert take_first(rig, 10) == []

    assert rig.dump() == disk
    assert rig.memory() == memory


def test_items_that_died_apart_are_entries_of_their_own_and_keep_their_times(rig: Rig) -> None:
    allow_attempts(rig, 1)
    ids = rig.add(b"a", b"bb", b"ccc")
    lease_id = rig.poll(3).lease_id
    first_ms = rig.now_ms
    rig.fail([ids[1]], lease_id)
    rig.now_ms += 5

    rig.fail([ids[2], ids[0]], lease_id)

    assert [decode_dead(key[4:], value) for key, value in rig.dump()["dead"]] == [
        (rig.now_ms, 1, run_of(ids[:1], 1, DIED, span=3)),
        (first_ms, 1, run_of(ids[1:2], 2, DIED, at=1, span=3)),
        (rig.now_ms, 1, run_of(ids[2:], 3, DIED, at=2)),
    ]
    rig.assert_sound()


@settings(max_examples=25, deadline=None)
@given(
    steps=st.lists(
        st.sampled_from(
            ["add and die", "die as a run", "hold", "held one dies", "redrive", "purge", "reopen"]
        ),
        max_size=14,
    )
)
def test_walk_through_any_steps_finds_every_dead_letter(steps: list[str]) -> None:
    """Whatever was walked before: none lies below where a walk begins."""
    rig = Rig()
    try:
        held = []
        for step in steps:
            if step == "add and die" and not rig.queue.counters.ready:
                make_dead(rig, NewItems([b"x", b"y"]))
            elif step == "die as a run" and not rig.queue.counters.ready:
                make_dead_run(rig, NewItems([b"x", b"y", b"z"]))
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
                purge(rig.engine, rig.queue, ItemState.DEAD, 2, rig.now_ms)
            elif step == "reopen":
                rig.reopen()

            page, _ = peek(rig.engine, rig.queue, ItemState.DEAD, b"", 100, MIB)
            assert [each.id for each in page] == rig.ids(Family.DEAD)
            assert len(page) == rig.stats().dead
        rig.assert_sound()
    finally:
        rig.close()
