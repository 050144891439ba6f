"""Events of a routed queue: what the check finds, and that kills of a server leave none missing."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from faults.facts import Facts
from faults.final_state import FinalState
from faults.routes.calls import check_calls
from faults.routes.events import FoundEvent, check_events
from faults.routes.run import run
from tests.faults.told import Teller

KILLS = int(os.environ.get("QUEUEBER_TEST_KILLS", "3"))

_ADDED = FoundEvent("q", "added", "1", 1, None, "ready", False, None)
_RELEASED = replace(_ADDED, change="released", was="leased")
_FAILED = replace(_RELEASED, change="failed", now="delayed", counts_attempt=True, error="boom")
_DEAD = replace(_FAILED, change="dead", now="dead", attempt=2)
_LIFE = [_ADDED, _RELEASED, _FAILED, _DEAD]
_TOTALS = {
    "added": 1, "released": 1, "failed": 2, "died": 1, "removed": 0, "completed": 0, "redriven": 0,
    "cancelled": 0, "expired": 0,
}  # fmt: skip


def test_a_life_with_one_event_for_each_change_is_right() -> None:
    assert check_events("q", _LIFE, _TOTALS, {"1": "dead"}) == []


@pytest.mark.parametrize(
    ("events", "items", "said"),
    [
        (_LIFE[:1] + _LIFE[2:], {"1": "dead"}, "0 say released, but that happened 1 times"),
        ([*_LIFE[:2], *_LIFE[1:]], {"1": "dead"}, "2 say released"),
        ([_ADDED, _RELEASED, _DEAD, _FAILED], {"1": "dead"}, "'failed' from 'leased', but it was"),
        ([_ADDED, _FAILED, _RELEASED, _DEAD], {"1": "dead"}, "at attempt 1, but 2 attempts"),
        (_LIFE[1:], {"1": "dead"}, "its first event is 'released'"),
        (_LIFE, {}, "its last event leaves it 'dead', but it is 'gone'"),
        (_LIFE, {"1": "dead", "2": "ready"}, "item 2: is there without an event"),
    ],
)
def test_what_is_missing_invented_or_out_of_order_is_told(
    events: list[FoundEvent], items: dict[str, str], said: str
) -> None:
    found = check_events("q", events, _TOTALS, items)

    assert any(said in each for each in found), found


@pytest.mark.slow
@pytest.mark.recovery
def test_after_kills_of_the_server_every_change_has_one_event(tmp_path: Path) -> None:
    told = run(tmp_path, KILLS, seed=5)

    assert told.wrong == []
    assert told.kills == KILLS
    assert told.events > told.items > 0
    assert told.mirrored.keys() == {
        "chosen, diff", "chosen, full", "chosen, key", "contents, full", "contents, key",
        "ends, key",
    }  # fmt: skip


# --- against calls --------------------------------------------------------------------------------


def _told() -> Teller:
    """The calls that made `_LIFE`: item 1 was added, released, failed, and failed for good."""
    teller = Teller()
    teller.add(0, "1")
    teller.poll(10, "a", "1")
    teller.outcome(20, "release", "a", "1")
    teller.poll(30, "b", "1")
    teller.fail(40, "b", "1", "retried")
    teller.poll(50, "c", "1")
    teller.fail(60, "c", "1", "died")
    return teller


def _check(events: list[FoundEvent], teller: Teller) -> list[str]:
    return check_calls("q", events, Facts(teller.history, FinalState(), 2.0))


def test_events_that_tell_of_each_call_are_right() -> None:
    assert _check(_LIFE, _told()) == []


_CANCELLED = replace(_DEAD, change="cancelled", was="dead", now="gone", error=None)


@pytest.mark.parametrize(
    ("events", "said"),
    [
        (_LIFE[1:], "0 say that it was added"),
        ([_ADDED, *_LIFE], "2 say that it was added"),
        ([_ADDED, *_LIFE[2:]], "0 say 'released', but that many calls did it: 1"),
        ([*_LIFE[:2], *_LIFE[3:]], "0 say 'failed', but that many calls did it: 1"),
        ([*_LIFE[:3], replace(_DEAD, id="2")], "item 2: 1 say 'dead', but no more calls"),
        ([_ADDED, _FAILED, _RELEASED, _DEAD], "was released, failed, dead, and its events are"),
        ([*_LIFE, _CANCELLED], "1 say 'cancelled', but no more calls may have done it than 0"),
        ([*_LIFE, replace(_CANCELLED, change="purged")], "1 say 'purged', but the calls were told"),
    ],
)
def test_what_the_calls_contradict_is_told(events: list[FoundEvent], said: str) -> None:
    found = _check(events, _told())

    assert any(said in each for each in found), found


def test_calls_of_unknown_outcome_may_have_an_event() -> None:
    teller = _told()
    teller.call(70, "cancel", {"ids": ["1"]})
    teller.call(80, "purge", {"state": "dead"})

    assert _check(_LIFE, teller) == []
    assert _check([*_LIFE, _CANCELLED], teller) == []
    assert _check([*_LIFE, replace(_CANCELLED, change="purged")], teller) == []
    assert _check([*_LIFE, _CANCELLED, _CANCELLED], teller) != []
