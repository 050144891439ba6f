"""The checker on caps: items that are leased at once, and in a time."""

import pytest

from faults.final_state import FinalState
from tests.faults.told import Teller

ITEMS = [f"i{number}" for number in range(6)]


@pytest.fixture
def teller() -> Teller:
    made = Teller()
    made.add(0, *ITEMS)
    return made


def set_caps(
    teller: Teller, at_ms: float, concurrency_max: int = 0, items: int = 0, ms: int = 0
) -> None:
    caps = {"concurrency_max": concurrency_max, "rate_items": items, "rate_ms": ms}
    teller.call(at_ms, "caps", caps, {})


def test_more_items_of_a_key_than_its_cap_are_not_leased_at_once(teller: Teller) -> None:
    teller.add(1, "x", "y", "z", cap_keys=["ann", "bob", "ann"])
    caps = {"concurrency_max": 0, "rate_items": 0, "rate_ms": 0, "cap_by_concurrency_max": 1}
    teller.call(2, "caps", caps, {})
    teller.poll(5, "l", "x", "y")
    assert rules(teller) == set()

    teller.poll(10, "m", "z")
    assert rules(teller) == {"too many of a key"}


def test_more_items_of_a_key_than_its_rate_allows_are_not_given(teller: Teller) -> None:
    teller.add(1, "x", "y", "z", cap_keys=["ann", "bob", "ann"])
    caps = {"concurrency_max": 0, "rate_items": 0, "rate_ms": 0}
    caps |= {"cap_by_rate_items": 1, "cap_by_rate_ms": 40}
    teller.call(2, "caps", caps, {})
    teller.poll(5, "l", "x", "y")
    assert rules(teller) == set()

    teller.poll(10, "m", "z")
    assert rules(teller) == {"too fast for a key"}


def test_the_rate_of_a_key_allows_more_as_time_passes(teller: Teller) -> None:
    teller.add(1, "x", "y", cap_keys=["ann", "ann"])
    caps = {"concurrency_max": 0, "rate_items": 0, "rate_ms": 0}
    caps |= {"cap_by_rate_items": 1, "cap_by_rate_ms": 40}
    teller.call(2, "caps", caps, {})
    teller.poll(5, "l", "x")
    teller.poll(50, "m", "y")

    assert rules(teller) == set()


def rules(teller: Teller) -> set[str]:
    """What is left of the items does not matter here."""
    return teller.rules(FinalState({})) - {"lost"}


def test_more_items_than_the_cap_are_not_leased_at_once(teller: Teller) -> None:
    set_caps(teller, 2, concurrency_max=3)
    teller.poll(5, "l", *ITEMS[:2])
    teller.poll(10, "m", *ITEMS[2:4])

    assert rules(teller) == {"too many leased"}


def test_a_lease_that_ended_makes_room(teller: Teller) -> None:
    set_caps(teller, 2, concurrency_max=3)
    teller.poll(5, "l", *ITEMS[:2], lease_ms=20)
    teller.poll(30, "m", *ITEMS[2:4])

    assert rules(teller) == set()


def test_what_was_leased_before_the_cap_was_set_is_no_proof(teller: Teller) -> None:
    teller.poll(2, "l", *ITEMS[:4])
    set_caps(teller, 5, concurrency_max=1)

    assert rules(teller) == set()


def test_more_items_than_the_rate_allows_are_not_given(teller: Teller) -> None:
    set_caps(teller, 2, items=2, ms=40)
    teller.poll(5, "l", *ITEMS[:2])
    teller.poll(10, "m", *ITEMS[2:4])

    assert rules(teller) == {"too fast"}


def test_the_rate_allows_more_as_time_passes(teller: Teller) -> None:
    set_caps(teller, 2, items=2, ms=40)
    teller.poll(5, "l", *ITEMS[:2])
    teller.poll(50, "m", *ITEMS[2:4])

    assert rules(teller) == set()


def test_the_rate_is_not_certain_when_the_clock_steps_forward(teller: Teller) -> None:
    set_caps(teller, 2, items=2, ms=40)
    teller.poll(5, "l", *ITEMS[:2])
    teller.call(7, "clock_step", {"ms": 100}, {}, queue="")
    teller.poll(10, "m", *ITEMS[2:4])

    assert rules(teller) == set()
