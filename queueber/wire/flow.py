"""Flow control of a connection: when its bytes are passed on to Cap'n Proto.

This file has all states and events that affect reading. Cap'n Proto asks for bytes and says when it
has enough; in between, a server may have a reason to pass nothing on. While one reason holds a
connection back, other reasons may begin and end: the code that resumes reading checks for them.

                        ┌──────── asked ────────┐      turn came, socket drained,
      IDLE ◀── enough ──┤                       ▼      memory free, calls free
        ▲               └──────────────────── READING ◀──────────────────────┐
        │                                       │ share used, socket full,   │
        │                                       │ memory short, calls full   │
        └────────────── enough ──────────── RESTING, UNSENT, ────────────────┘
                                            SHORT_OF_MEMORY, TOO_MANY_CALLS
      any ── hung up ──▶ LEAVING        any ── lost ──▶ LOST
"""

from enum import StrEnum

from queueber.errors import InvariantViolation


class State(StrEnum):
    IDLE = "Cap'n Proto asks for nothing"
    READING = "it asks, and gets the bytes that come"
    RESTING = "it asks; the connection has used its share of this turn of the loop"
    UNSENT = "it asks; answers of the connection wait for the socket"
    SHORT_OF_MEMORY = "it asks for a long message; there is no memory for it yet"
    TOO_MANY_CALLS = "it asks; too many calls are under way"
    LEAVING = "nothing more is read; the connection is about to be closed"
    LOST = "the connection is over"


class Event(StrEnum):
    ASKED = "Cap'n Proto asks for bytes"
    ENOUGH = "Cap'n Proto has what it asked for"
    SHARE_USED = "the connection has used its share of this turn"
    TURN_CAME = "its next turn has come"
    SOCKET_FULL = "the socket takes no further answers"
    SOCKET_DRAINED = "the socket takes answers again, and none waits"
    MEMORY_SHORT = "there is no memory for a long message"
    MEMORY_FREE = "memory was reserved for the long message"
    CALLS_FULL = "too many calls are under way"
    CALLS_FREE = "calls have ended, or the connection has waited long enough"
    HUNG_UP = "the server wants to end the connection"
    LOST = "the connection is over"


_HELD_BACK = {
    # state: (what leads to it from READING, what ends it)
    State.RESTING: (Event.SHARE_USED, Event.TURN_CAME),
    State.UNSENT: (Event.SOCKET_FULL, Event.SOCKET_DRAINED),
    State.SHORT_OF_MEMORY: (Event.MEMORY_SHORT, Event.MEMORY_FREE),
    State.TOO_MANY_CALLS: (Event.CALLS_FULL, Event.CALLS_FREE),
}
_AT_ANY_TIME = {
    Event.TURN_CAME,
    Event.SOCKET_FULL,
    Event.SOCKET_DRAINED,
    Event.MEMORY_FREE,
    Event.CALLS_FREE,
}
"""These events may come in any state. A state that they do not concern stays as it is."""

TRANSITIONS: dict[tuple[State, Event], State] = {
    **{(state, event): state for state in State for event in _AT_ANY_TIME},
    (State.IDLE, Event.ASKED): State.READING,
    (State.IDLE, Event.ENOUGH): State.IDLE,
    (State.READING, Event.ASKED): State.READING,
    (State.READING, Event.ENOUGH): State.IDLE,
    **{(state, Event.ASKED): state for state in _HELD_BACK},
    **{(state, Event.ENOUGH): State.IDLE for state in _HELD_BACK},
    **{(State.READING, begin): state for state, (begin, _) in _HELD_BACK.items()},
    **{(state, end): State.READING for state, (_, end) in _HELD_BACK.items()},
    **{(state, Event.HUNG_UP): State.LEAVING for state in State},
    **{(state, Event.LOST): State.LOST for state in State},
    # Cap'n Proto does not know yet that the connection ends.
    (State.LEAVING, Event.ASKED): State.LEAVING,
    (State.LEAVING, Event.ENOUGH): State.LEAVING,
    (State.LOST, Event.ASKED): State.LOST,
    (State.LOST, Event.ENOUGH): State.LOST,
    (State.LOST, Event.HUNG_UP): State.LOST,
}
"""All legal transitions."""


def after(state: State, event: Event) -> State:
    """The state after the event. Raises `InvariantViolation` if the event is illegal."""
    try:
        return TRANSITIONS[state, event]
    except KeyError:
        raise InvariantViolation(f"flow: {event.name} in state {state.name}") from None
