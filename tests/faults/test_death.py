"""Servers and clients that die, stand still or are told a wrong time: what was said stays true."""

import os
from random import Random

import pytest

from faults.death.blows import BLOWS
from faults.death.members import QUEUE, TASKS
from faults.death.run import run, schedule, undone
from faults.final_state import FinalState, FoundItem, FoundResult
from tests.faults.told import Teller

KILLS = int(os.environ.get("QUEUEBER_TEST_KILLS", "6"))


@pytest.mark.recovery
@pytest.mark.timeout(120 + 10 * KILLS)
def test_what_was_acknowledged_is_true_whoever_dies() -> None:
    """Kills with those of a server that starts and of one whose clock is set."""
    told = run(KILLS, seed=2)

    assert told.wrong == []
    assert told.acknowledged("add") > 20 * KILLS, "hardly any load"
    assert told.acknowledged("remove", "complete") > 5 * KILLS, "hardly any load"
    assert told.messages("publish", "together") > 20 * KILLS, "hardly any load"
    assert told.messages("pushed") > 5 * KILLS, "hardly any load"
    assert told.moved > 5 * KILLS, "hardly any load"


def test_every_blow_is_struck_at_least_once() -> None:
    blows = schedule(3, Random(1))

    assert set(blows) == set(BLOWS)
    assert blows.count("server killed") == 3
    assert blows == schedule(3, Random(1))


@pytest.mark.parametrize(
    ("final", "told"),
    [
        (FinalState(results=[FoundResult(0, "a", "done")]), ""),
        (FinalState({"a": FoundItem("a", "dead")}), "undone: a has no result, and is dead"),
        (FinalState({"a": FoundItem("a", "ready")}), "undone: a has no result, and is ready"),
        (FinalState(), "undone: a has no result, and is not there"),
    ],
)
def test_task_is_done_only_by_its_result(final: FinalState, told: str) -> None:
    teller = Teller()
    teller.call(0, "add", {"contents": ["a"]}, {"ids": ["a"]}, queue=TASKS)
    teller.call(1, "add", {"contents": ["perhaps"]}, None, queue=TASKS)
    teller.call(2, "add", {"contents": ["other"]}, {"ids": ["of consumers"]}, queue=QUEUE)

    assert "".join(undone(teller.history, final)).partition("\n")[0] == told
