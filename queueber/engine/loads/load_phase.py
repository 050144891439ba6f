"""How far a load is, as a table of legal transitions.

    STAGING ── prepare ──▶ PREPARING ── intend ──▶ FINISHING ── conclude ──▶ ENDED
       │  ◀── give up ──────────┘                   │     ▲
       │                                  interrupt ▼     │ resume
       └── drop ──▶ ENDED                          INTENDED

Only FINISHING and INTENDED are recorded, as one: a load whose intent is written will be committed,
by this server or by the next one that opens the store. While any load of a queue is past STAGING,
the queue forgets nothing and no other load of it is committed.
"""

from enum import Enum

from queueber.errors import invariant


class LoadPhase(Enum):
    STAGING = "parts are staged"
    PREPARING = "parts are checked and duplicates looked for; nothing has changed"
    INTENDED = "it will be committed; nobody is at work"
    FINISHING = "its files are being taken in"
    ENDED = "it was committed or dropped"


TRANSITIONS: dict[tuple[LoadPhase, str], LoadPhase] = {
    (LoadPhase.STAGING, "prepare"): LoadPhase.PREPARING,
    (LoadPhase.STAGING, "drop"): LoadPhase.ENDED,
    (LoadPhase.PREPARING, "give up"): LoadPhase.STAGING,
    (LoadPhase.PREPARING, "intend"): LoadPhase.FINISHING,
    (LoadPhase.INTENDED, "resume"): LoadPhase.FINISHING,
    (LoadPhase.FINISHING, "interrupt"): LoadPhase.INTENDED,
    (LoadPhase.FINISHING, "conclude"): LoadPhase.ENDED,
}
"""Every pair that is not here is a bug of ours."""


def next_phase(phase: LoadPhase, event: str) -> LoadPhase:
    found = TRANSITIONS.get((phase, event))
    invariant(found is not None, "I13", phase=phase.name, event=event)
    return found or phase
