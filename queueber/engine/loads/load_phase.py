"""The phases of a load, as a table of legal transitions.

    STAGING ── prepare ──▶ PREPARING ── intend ──▶ FINISHING ── conclude ──▶ ENDED
       │  ◀── give up ──────────┘                   │     ▲
       │                                  interrupt ▼     │ resume
       └── drop ──▶ ENDED                          INTENDED

The store records only whether the intent is written (FINISHING and INTENDED): such a load will be
committed, by this server or by the next one that opens the store. While any load of a queue is past
STAGING, the queue forgets no records, and no other load of it is committed.
"""

from enum import Enum

from queueber.errors import invariant


class LoadPhase(Enum):
    STAGING = "callers stage its parts"
    PREPARING = "the server checks parts and searches duplicates; nothing has changed"
    INTENDED = "it will be committed, but no call works on it now"
    FINISHING = "the server takes in its files"
    ENDED = "it is committed or dropped"


TRANSITIONS: dict[tuple[LoadPhase, str], LoadPhase] = {
    (LoadPhase.STAGING, "prepare"): LoadPhase.PREPARING,
    (LoadPhase.STAGING, "drop"): LoadPhase.ENDED,
    (LoadPhase.PREPARING, "give up"): LoadPhase.STAGING,
    (LoadPhase.PREPARING, "intend"): LoadPhase.FINISHING,
    (LoadPhase.INTENDED, "resume"): LoadPhase.FINISHING,
    (LoadPhase.FINISHING, "interrupt"): LoadPhase.INTENDED,
    (LoadPhase.FINISHING, "conclude"): LoadPhase.ENDED,
}
"""A pair that is not in this table is a bug of the server."""


def next_phase(phase: LoadPhase, event: str) -> LoadPhase:
    found = TRANSITIONS.get((phase, event))
    invariant(found is not None, "I13", phase=phase.name, event=event)
    return found or phase
