"""Caps of a queue: how many items polls lease at once, and in a time."""

from dataclasses import replace
from typing import Any

import pytest

from queueber.model import NOTHING_POLLED, QueueSettings
from tests.support.operations import configure_queue
from tests.support.rig import QUEUE, Rig


def set_caps(rig: Rig, **caps: Any) -> None:
    configure_queue(rig.engine, QUEUE, replace(rig.queue.settings, **caps), rig.now_ms)


@pytest.fixture
def rig() -> Rig:
    made = Rig(QueueSettings(concurrency_max=3))
    made.add(*[b"x"] * 10)
    return made


def counts(rig: Rig, *wanted: int) -> list[int]:
    return [polled.count for polled in rig.poll_many(wanted)]


def test_polls_lease_no_more_than_the_cap_in_order(rig: Rig) -> None:
    assert counts(rig, 2, 5, 1) == [2, 1, 0]
    assert rig.poll_many([1, 1]) == [NOTHING_POLLED] * 2
    assert (rig.stats().leased, rig.stats().ready) == (3, 7)
    rig.assert_sound()


def test_a_poll_above_the_cap_changes_nothing(rig: Rig) -> None:
    rig.poll(3)
    disk, memory = rig.dump(), rig.memory()

    assert rig.poll(1) == NOTHING_POLLED

    assert (rig.dump(), rig.memory()) == (disk, memory)


@pytest.mark.parametrize("outcome", ["remove", "complete", "release", "expire"])
def test_whatever_ends_a_lease_makes_room(rig: Rig, outcome: str) -> None:
    polled = rig.poll(3, lease_ms=100)
    if outcome == "expire":
        rig.now_ms += 100
        rig.sweep_all()
    else:
        getattr(rig, outcome)(list(polled.ids), polled.lease_id)

    assert counts(rig, 5) == [3]
    rig.assert_sound()


def test_a_cap_that_is_lowered_takes_nothing_back(rig: Rig) -> None:
    polled = rig.poll(3)
    set_caps(rig, concurrency_max=1)

    assert rig.stats().leased == 3
    assert rig.remove(list(polled.ids)[:2], polled.lease_id) == [True, True]
    assert rig.poll(5) == NOTHING_POLLED
    assert rig.remove(list(polled.ids)[2:], polled.lease_id) == [True]
    assert counts(rig, 5) == [1]


def test_caps_that_are_taken_away_hold_nothing_back(rig: Rig) -> None:
    rig.poll(3)
    set_caps(rig, concurrency_max=0)

    assert rig.queue.caps is None
    assert counts(rig, 10) == [7]


def test_rate_allows_a_burst_and_then_one_after_the_other(rig: Rig) -> None:
    set_caps(rig, concurrency_max=0, rate_items=4, rate_ms=1000)

    assert counts(rig, 3, 3, 3) == [3, 1, 0]
    assert rig.engine.agenda.next_ms() == rig.now_ms + 250
    rig.now_ms += 249
    assert counts(rig, 9) == [0]
    rig.now_ms += 1
    assert counts(rig, 9) == [1]
    rig.now_ms += 500
    assert counts(rig, 9) == [2]


def test_an_item_that_comes_back_counts_again(rig: Rig) -> None:
    """A rate counts what is leased, not what is finished."""
    set_caps(rig, concurrency_max=0, rate_items=2, rate_ms=1000)
    polled = rig.poll(2)
    rig.release(list(polled.ids), polled.lease_id)

    assert rig.poll(2) == NOTHING_POLLED


def test_a_restart_does_not_fill_the_bucket(rig: Rig) -> None:
    set_caps(rig, concurrency_max=0, rate_items=4, rate_ms=1000)
    rig.poll(4)
    rig.reopen()

    assert rig.poll(4) == NOTHING_POLLED
    assert rig.engine.agenda.next_ms() <= rig.now_ms + 250
    rig.now_ms += 250
    assert counts(rig, 4) == [1]


def test_a_sweep_looks_again_when_the_rate_allows_an_item(rig: Rig) -> None:
    set_caps(rig, concurrency_max=0, rate_items=4, rate_ms=1000)
    rig.poll(4, lease_ms=60_000)
    rig.now_ms += 100
    rig.engine.agenda.schedule(rig.queue.queue_id, rig.now_ms)

    rig.sweep_all()

    assert rig.engine.agenda.next_ms() == rig.now_ms + 150


def test_a_rate_that_is_raised_is_due_earlier(rig: Rig) -> None:
    set_caps(rig, concurrency_max=0, rate_items=1, rate_ms=60_000)
    rig.poll(1, lease_ms=3_600_000)
    set_caps(rig, rate_ms=1000)

    assert rig.engine.agenda.next_ms() == rig.now_ms + 1000
    rig.now_ms += 1000
    rig.sweep_all()
    assert counts(rig, 1) == [1]


def test_a_clock_that_was_set_back_costs_one_token(rig: Rig) -> None:
    """The server reads it when it starts."""
    set_caps(rig, concurrency_max=0, rate_items=4, rate_ms=1000)
    rig.poll(4)
    rig.now_ms -= 86_400_000
    rig.reopen()
    rig.sweep_all()

    assert rig.poll(4) == NOTHING_POLLED
    rig.now_ms += 250
    assert counts(rig, 4) == [1]
