"""The flow of a connection: every state and every event, without a socket."""

from itertools import product

import pytest

from queueber.errors import InvariantViolation
from queueber.wire.flow import TRANSITIONS, Event, State, after

N, R, S, U = State.IDLE, State.READING, State.RESTING, State.UNSENT
M, C, L, X = State.SHORT_OF_MEMORY, State.TOO_MANY_CALLS, State.LEAVING, State.LOST

TABLE: dict[Event, tuple[State | None, ...]] = {
    # from:                N, R, S, U, M, C, L, X
    Event.ASKED:          (R, R, S, U, M, C, L, X),
    Event.ENOUGH:         (N, N, N, N, N, N, L, X),
    Event.SHARE_USED:     (None, S, None, None, None, None, None, None),
    Event.TURN_CAME:      (N, R, R, U, M, C, L, X),
    Event.SOCKET_FULL:    (N, U, S, U, M, C, L, X),
    Event.SOCKET_DRAINED: (N, R, S, R, M, C, L, X),
    Event.MEMORY_SHORT:   (None, M, None, None, None, None, None, None),
    Event.MEMORY_FREE:    (N, R, S, U, R, C, L, X),
    Event.CALLS_FULL:     (None, C, None, None, None, None, None, None),
    Event.CALLS_FREE:     (N, R, S, U, M, R, L, X),
    Event.HUNG_UP:        (L, L, L, L, L, L, L, X),
    Event.LOST:           (X, X, X, X, X, X, X, X),
}  # fmt: skip
"""What follows each event in each state; None: that cannot be."""

PAIRS = list(product(State, Event))


def expected(state: State, event: Event) -> State | None:
    return TABLE[event][list(State).index(state)]


@pytest.mark.parametrize(("state", "event"), PAIRS, ids=lambda each: each.name)
def test_every_event_in_every_state(state: State, event: Event) -> None:
    before = dict(TRANSITIONS)
    follows = expected(state, event)

    if follows is None:
        with pytest.raises(InvariantViolation, match=f"{event.name} in state {state.name}"):
            after(state, event)
    else:
        assert after(state, event) is follows
    assert before == TRANSITIONS


def test_every_state_is_reached_and_all_but_the_last_two_lead_back_to_reading() -> None:
    reached, todo = {State.IDLE}, [State.IDLE]
    while todo:
        state = todo.pop()
        for event in Event:
            follows = TRANSITIONS.get((state, event), state)
            if follows not in reached:
                reached.add(follows)
                todo.append(follows)
    leads_to_reading = {
        state for state, event in PAIRS if TRANSITIONS.get((state, event)) is State.READING
    }

    assert reached == set(State)
    assert leads_to_reading == set(State) - {State.LEAVING, State.LOST}


def test_what_holds_a_connection_back_leaves_reading_and_nothing_else_does() -> None:
    """Whoever goes on reading looks for other reasons anew, so one at a time is enough."""
    held_back = {TRANSITIONS.get((State.READING, event)) for event in Event}

    assert held_back == {R, N, S, U, M, C, L, X}
    for state in (S, U, M, C):
        ends = {event for event in Event if TRANSITIONS.get((state, event)) is State.READING}
        assert len(ends) == 1
