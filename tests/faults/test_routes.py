"""Events of a routed queue: what the check finds, and that kills of a server leave none missing."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from faults.routes.events import FoundEvent, check_events
from faults.routes.run import run

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
