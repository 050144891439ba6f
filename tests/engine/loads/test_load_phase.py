"""The phases of a load: every pair of phase and event does what the table says, or nothing."""

from itertools import product

import pytest

from queueber.engine.loads.loads import TRANSITIONS, LoadPhase, next_phase
from queueber.errors import InvariantViolation

EVENTS = sorted({event for _, event in TRANSITIONS})


@pytest.mark.parametrize(("phase", "event"), list(product(LoadPhase, EVENTS)))
def test_event_in_each_phase_does_what_the_table_says(phase: LoadPhase, event: str) -> None:
    if (phase, event) in TRANSITIONS:
        assert next_phase(phase, event) is TRANSITIONS[phase, event]
    else:
        with pytest.raises(InvariantViolation, match="I13"):
            next_phase(phase, event)


def test_every_phase_but_the_last_can_be_left_and_ends_at_last() -> None:
    reached = {LoadPhase.STAGING}
    for _ in LoadPhase:
        reached |= {to for (phase, _), to in TRANSITIONS.items() if phase in reached}

    assert reached == set(LoadPhase)
    assert {phase for phase, _ in TRANSITIONS} == set(LoadPhase) - {LoadPhase.ENDED}
