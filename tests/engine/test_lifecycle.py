"""Every state and every operation: what is not in the table leaves the item as it was."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product

import pytest

from queueber.db.families import Family
from queueber.engine.expire import expire, expire_lease
from queueber.engine.lifecycle import INVARIANTS, TRANSITIONS, State
from queueber.engine.promote import promote
from tests.support.rig import Rig

LEASE_MS = 100
DELAY_MS = 100


@dataclass
class Subject:
    """The one item of a queue, and the lease under which it is or was held."""

    item_id: bytes
    lease_id: bytes = bytes(16)


def make(rig: Rig, state: State) -> Subject:
    (item_id,) = rig.add(b"subject", delays_ms=[DELAY_MS if state is State.DELAYED else 0])
    subject = Subject(item_id)
    if state in (State.IN_PROGRESS, State.GONE):
        subject.lease_id = rig.poll(lease_ms=LEASE_MS).lease_id
    if state is State.GONE:
        assert rig.remove([item_id], subject.lease_id) == [True]
    return subject


def state_of(rig: Rig, item_id: bytes) -> State:
    """By the families alone, and by exactly one of them."""
    places = {
        State.READY: Family.VISIBILITY_INDEX,
        State.DELAYED: Family.DELAYED,
        State.IN_PROGRESS: Family.IN_PROGRESS,
    }
    found = [
        state
        for state, family in places.items()
        if item_id in [key[-16:] for key in rig.keys(family)]
    ]
    if item_id not in [key[4:] for key in rig.keys(Family.ITEMS)]:
        assert found == []
        return State.GONE
    (state,) = found
    return state


OPERATIONS: dict[str, Callable[[Rig, Subject], object]] = {
    "poll": lambda rig, _: rig.poll(),
    "extend": lambda rig, subject: rig.extend(subject.lease_id, 500),
    "remove": lambda rig, subject: rig.remove([subject.item_id], subject.lease_id),
    # By then every lease and every delay is over.
    "expire": lambda rig, _: expire(rig.engine, rig.queue, rig.now_ms + LEASE_MS, 10),
    "promote": lambda rig, _: promote(rig.engine, rig.queue, rig.now_ms + DELAY_MS, 10),
    "expire_lease": lambda rig, subject: expire_lease(
        rig.engine, rig.queue, subject.lease_id, rig.now_ms
    ),
}


def names(pair: object) -> str:
    return pair.name if isinstance(pair, State) else str(pair)


@pytest.mark.parametrize(("state", "operation"), list(product(State, OPERATIONS)), ids=names)
def test_operation_on_an_item_in_each_state_does_what_the_table_says(
    rig: Rig, state: State, operation: str
) -> None:
    subject = make(rig, state)
    assert state_of(rig, subject.item_id) is state
    disk = rig.dump()

    OPERATIONS[operation](rig, subject)

    # Giving one lease up early is the same step of the item's life as its expiry.
    step = "expire" if operation == "expire_lease" else operation
    if (state, step) in TRANSITIONS:
        assert state_of(rig, subject.item_id) is TRANSITIONS[state, step]
        assert rig.dump() != disk
    else:
        assert rig.dump() == disk
    rig.assert_sound()


def test_every_operation_of_the_table_is_walked() -> None:
    assert {operation for _, operation in TRANSITIONS} <= set(OPERATIONS)


def test_gone_is_for_ever_and_every_other_state_has_a_way_there() -> None:
    onwards: dict[State, set[State]] = {state: set() for state in State}
    for (state, _), after in TRANSITIONS.items():
        onwards[state].add(after)
    assert onwards[State.GONE] == set()

    reached = {State.GONE}
    for _ in State:
        reached |= {state for state in State if onwards[state] & reached}

    assert reached == set(State)


def test_invariants_are_numbered_without_gaps() -> None:
    assert list(INVARIANTS) == [f"I{n}" for n in range(1, 9)]
