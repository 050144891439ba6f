"""Every state and every operation: what is not in the table leaves the item as it was."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import product

import pytest

from queueber.db.families import Family
from queueber.engine.queue.lifecycle import INVARIANTS, TRANSITIONS, DeathReason, State
from queueber.limits import MIB
from queueber.model import ItemOptions, ItemState, NewItems
from tests.support.ending import expire_together
from tests.support.operations import (
    cancel,
    complete_whole,
    configure_queue,
    expire,
    forget,
    peek,
    promote,
    purge,
    redrive,
    redrive_first,
    release_lease,
    remove_whole,
    reschedule,
)
from tests.support.rig import QUEUE, Rig

LEASE_MS = 100
DELAY_MS = 100
LAST_ATTEMPT = ", the last attempt"

FAMILIES = {
    State.READY: Family.VISIBILITY_INDEX,
    State.DELAYED: Family.DELAYED,
    State.LEASED: Family.LEASES,
    State.DEAD: Family.DEAD,
}


@dataclass
class Subject:
    """The one item of a queue, and the lease under which it is or was held."""

    item_id: bytes
    lease_id: bytes = bytes(16)


def allow_attempts(rig: Rig, count: int) -> None:
    configure_queue(rig.engine, QUEUE, replace(rig.queue.settings, attempts_max=count), rig.now_ms)


def make(rig: Rig, state: State) -> Subject:
    (item_id,) = rig.add(b"subject", delays_ms=[DELAY_MS if state is State.DELAYED else 0])
    subject = Subject(item_id)
    if state in (State.LEASED, State.DEAD, State.GONE):
        subject.lease_id = rig.poll(lease_ms=LEASE_MS).lease_id
    if state is State.DEAD:
        allow_attempts(rig, 1)
        rig.fail([item_id], subject.lease_id)
        allow_attempts(rig, 20)
    if state is State.GONE:
        assert rig.remove([item_id], subject.lease_id) == [True]
    return subject


def state_of(rig: Rig, item_id: bytes) -> State:
    """By the families alone, and by exactly one of them."""
    found = [state for state, family in FAMILIES.items() if item_id in rig.ids(family)]
    if item_id not in rig.stored_ids():
        assert found == []
        return State.GONE
    (state,) = found
    return state


OPERATIONS: dict[str, Callable[[Rig, Subject], object]] = {
    "poll": lambda rig, _: rig.poll(),
    "extend": lambda rig, subject: rig.extend(subject.lease_id, 500),
    "remove": lambda rig, subject: rig.remove([subject.item_id], subject.lease_id),
    "complete": lambda rig, subject: rig.complete([subject.item_id], subject.lease_id),
    "fail": lambda rig, subject: rig.fail([subject.item_id], subject.lease_id),
    "release": lambda rig, subject: rig.release([subject.item_id], subject.lease_id),
    # By then every lease and every delay is over.
    "expire": lambda rig, _: expire(rig.engine, rig.queue, rig.now_ms + LEASE_MS, 10),
    "promote": lambda rig, _: promote(rig.engine, rig.queue, rig.now_ms + DELAY_MS, 10),
    "redrive": lambda rig, subject: redrive(rig.engine, rig.queue, [subject.item_id], rig.now_ms),
    "cancel": lambda rig, subject: cancel(rig.engine, rig.queue, [subject.item_id], rig.now_ms),
    "reschedule": lambda rig, subject: reschedule(
        rig.engine, rig.queue, [subject.item_id], 3 * DELAY_MS, rig.now_ms
    ),
    "reschedule, now": lambda rig, subject: reschedule(
        rig.engine, rig.queue, [subject.item_id], 0, rig.now_ms
    ),
    "purge": lambda rig, _: [
        purge(rig.engine, rig.queue, state, 10, rig.now_ms) for state in ItemState
    ],
    # The same steps of an item's life by other names.
    "expire_together": lambda rig, subject: expire_together(
        rig.engine, rig.queue, [subject.lease_id], rig.now_ms
    ),
    "remove_whole": lambda rig, subject: remove_whole(
        rig.engine, rig.queue, [subject.lease_id], [1], rig.now_ms
    ),
    "complete_whole": lambda rig, subject: complete_whole(
        rig.engine, rig.queue, [subject.lease_id], [1], [b"result"], rig.now_ms
    ),
    "release_lease": lambda rig, subject: release_lease(
        rig.engine, rig.queue, subject.lease_id, rig.now_ms
    ),
    "redrive_first": lambda rig, _: redrive_first(rig.engine, rig.queue, 10, rig.now_ms),
    # What moves no item.
    "peek": lambda rig, _: [
        peek(rig.engine, rig.queue, state, b"", 10, MIB) for state in ItemState
    ],
    "forget": lambda rig, _: forget(rig.engine, rig.queue, rig.now_ms, 10),
}
STEPS = {
    "expire_together": "expire",
    "remove_whole": "remove",
    "complete_whole": "complete",
    "release_lease": "release",
    "redrive_first": "redrive",
}
FATAL = ("expire", "expire_together", "fail")


def names(pair: object) -> str:
    return pair.name if isinstance(pair, State) else str(pair)


def assert_step(rig: Rig, state: State, operation: str, step: str) -> None:
    subject = make(rig, state)
    assert state_of(rig, subject.item_id) is state
    if step.endswith(LAST_ATTEMPT):
        allow_attempts(rig, 1)
    disk = rig.dump()

    OPERATIONS[operation](rig, subject)

    if (state, step) in TRANSITIONS:
        assert state_of(rig, subject.item_id) is TRANSITIONS[state, step]
        assert rig.dump() != disk
    else:
        assert rig.dump() == disk
    rig.assert_sound()


@pytest.mark.parametrize(("state", "operation"), list(product(State, OPERATIONS)), ids=names)
def test_operation_on_an_item_in_each_state_does_what_the_table_says(
    rig: Rig, state: State, operation: str
) -> None:
    assert_step(rig, state, operation, STEPS.get(operation, operation))


@pytest.mark.parametrize(("state", "operation"), list(product(State, FATAL)), ids=names)
def test_operation_at_the_last_attempt_does_what_the_table_says(
    rig: Rig, state: State, operation: str
) -> None:
    assert_step(rig, state, operation, STEPS.get(operation, operation) + LAST_ATTEMPT)


@pytest.mark.parametrize("state", ItemState, ids=lambda state: state.name)
def test_purge_of_a_state_takes_the_items_of_that_state_and_no_others(
    rig: Rig, state: ItemState
) -> None:
    made = {}
    # The held one first: else the poll would take the ready one.
    for each in (State.LEASED, State.DEAD, State.READY, State.DELAYED):
        made[each] = make(rig, each).item_id

    purge(rig.engine, rig.queue, state, 10, rig.now_ms)

    found = {each: state_of(rig, item_id) for each, item_id in made.items()}
    assert found == {each: State.GONE if each.value == state.value else each for each in made}
    rig.assert_sound()


def test_every_operation_of_the_table_is_walked() -> None:
    walked = {STEPS.get(each, each) for each in OPERATIONS}
    walked |= {STEPS.get(each, each) + LAST_ATTEMPT for each in FATAL}
    walked |= {"expire, with others", "expire, unclaimed"}  # below
    walked |= {"let_go", "let_go, with a delay", "let_go, others died"}  # in test_let_go.py
    walked |= {"drop, of its age"}  # in test_drop.py

    assert {operation for _, operation in TRANSITIONS} <= walked


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
    assert list(INVARIANTS) == [f"I{n}" for n in range(1, 26)]


def test_reasons_of_death_have_the_numbers_that_are_on_disk_and_a_sentence_each() -> None:
    assert {reason.name: reason.value for reason in DeathReason} == {
        "FAILED": 1,
        "EXPIRED": 2,
        "UNCLAIMED": 3,
        "AWAITED": 4,
    }
    assert len({reason.text for reason in DeathReason}) == len(DeathReason)
    assert all(reason.text for reason in DeathReason)


def test_expire_with_others_does_what_the_table_says(rig: Rig) -> None:
    ids = rig.add(b"a", b"b")
    polled = rig.poll(2)

    expire_together(rig.engine, rig.queue, [polled.lease_id], rig.now_ms)

    expected = TRANSITIONS[State.LEASED, "expire, with others"]
    assert [state_of(rig, item_id) for item_id in ids] == [expected] * 2
    rig.assert_sound()


@pytest.mark.parametrize("state", State, ids=names)
def test_expiry_of_an_item_that_nobody_leased_does_what_the_table_says(
    rig: Rig, state: State
) -> None:
    """In the other states its expiry is over, or the item is gone."""
    rig.add_items(NewItems([b"x"], options=[ItemOptions(expires_ms=LEASE_MS + DELAY_MS + 1)]))
    item_id = rig.ready_ids()[0]
    if state is State.DELAYED:
        cancel(rig.engine, rig.queue, [item_id], rig.now_ms)
        late = [ItemOptions(expires_ms=2 * DELAY_MS)]
        (item_id,) = rig.add_items(NewItems([b"x"], [3 * DELAY_MS], options=late)).ids
    elif state is not State.READY:
        polled = rig.poll(lease_ms=10 * (LEASE_MS + DELAY_MS))
        if state is State.DEAD:
            allow_attempts(rig, 1)
            rig.fail([item_id], polled.lease_id)
        elif state is State.GONE:
            rig.remove([item_id], polled.lease_id)

    rig.now_ms += LEASE_MS + 2 * DELAY_MS + 1
    rig.sweep_all()

    assert state_of(rig, item_id) is TRANSITIONS.get((state, "expire, unclaimed"), state)
    rig.assert_sound()
