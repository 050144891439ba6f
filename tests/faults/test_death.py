"""Servers and clients that die, stand still or are told a wrong time: what was said stays true."""

import os
from random import Random

import pytest

from faults.death.blows import BLOWS
from faults.death.run import run, schedule

KILLS = int(os.environ.get("QUEUEBER_TEST_KILLS", "15"))


@pytest.mark.recovery
@pytest.mark.timeout(120 + 10 * KILLS)
def test_what_was_acknowledged_is_true_whoever_dies() -> None:
    """Twenty kills with those of a server that starts and of one whose clock is set."""
    told = run(KILLS, seed=2)

    assert told.wrong == []
    assert told.acknowledged("add") > 20 * KILLS, "hardly any load"
    assert told.acknowledged("remove", "complete") > 5 * KILLS, "hardly any load"


def test_every_blow_is_struck_at_least_once() -> None:
    blows = schedule(3, Random(1))

    assert set(blows) == set(BLOWS)
    assert blows.count("server killed") == 3
    assert blows == schedule(3, Random(1))
