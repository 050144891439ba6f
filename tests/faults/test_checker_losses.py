"""The checker on what was there for certain, though nobody was told so in plain words."""

from typing import Any

import pytest

from faults.final_state import FinalState, FoundItem, FoundResult
from tests.faults.told import Teller, contents_of, result_of


@pytest.fixture
def teller() -> Teller:
    return Teller()


def there(*items: str) -> FinalState:
    return FinalState({item: FoundItem(contents_of(item), "ready") for item in items})


# --- duplicates -----------------------------------------------------------------------------------


def add_again(teller: Teller, at_ms: float, item: str, key: str = "k") -> None:
    """An add that is told that its key stands for that item."""
    arguments = {"contents": ["others"], "keys": [key]}
    teller.call(at_ms, "add", arguments, {"ids": [item], "duplicates": [True]})


def test_duplicate_of_an_item_that_nobody_added_is_wrong(teller: Teller) -> None:
    add_again(teller, 0, "a")

    assert teller.rules(there()) == {"duplicate"}


def test_duplicate_of_an_item_with_another_key_is_wrong(teller: Teller) -> None:
    teller.add(0, "a", keys=["another"])
    add_again(teller, 5, "a")

    assert teller.rules(there("a")) == {"duplicate"}


def test_duplicate_of_an_item_that_was_added_later_is_wrong(teller: Teller) -> None:
    add_again(teller, 0, "a")
    teller.add(5, "a", keys=["k"])

    assert teller.rules(there("a")) == {"duplicate"}


@pytest.mark.parametrize(
    ("at_ms", "key", "rules"),
    [(0, "k", set()), (0, "another", {"duplicate"}), (10, "k", {"duplicate"})],
)
def test_duplicate_may_be_of_an_add_whose_answer_was_lost(
    teller: Teller, at_ms: float, key: str, rules: set[str]
) -> None:
    teller.add(at_ms, "a", is_lost=True, keys=[key])
    add_again(teller, 5, "a")

    assert teller.rules(there("a")) == rules


def test_item_of_a_lost_add_that_a_duplicate_was_told_of_is_not_lost(teller: Teller) -> None:
    teller.add(0, "a", is_lost=True, keys=["k"])
    add_again(teller, 5, "a")

    assert teller.rules(there()) == {"lost"}


def test_item_that_a_duplicate_was_told_of_may_have_ended_or_been_purged(teller: Teller) -> None:
    teller.add(0, "a", "b", is_lost=True, keys=["k", "l"])
    add_again(teller, 5, "a")
    add_again(teller, 7, "b", "l")
    teller.call(10, "cancel", {"ids": ["a"]}, {"done": [True]})
    assert teller.rules(there()) == {"lost"}

    teller.call(12, "purge", {"state": "ready"}, {"count": 1})
    assert teller.rules(there()) == set()


# --- producers ------------------------------------------------------------------------------------

TURN: dict[str, Any] = {"producer": ["p", 0, 1]}


def repeat(teller: Teller, at_ms: float, *items: str, **arguments: Any) -> None:
    """A producer's call that is told that it has come before, and no ids."""
    contents = [contents_of(item) for item in items]
    teller.call(at_ms, "add", {"contents": contents, **TURN, **arguments}, {"ids": []})


def test_first_call_of_a_producer_is_not_answered_as_a_repeat(teller: Teller) -> None:
    repeat(teller, 0, "a")

    assert teller.rules(there()) == {"repeat", "lost"}


def test_call_of_a_producer_that_was_refused_before_is_no_repeat(teller: Teller) -> None:
    teller.refused(0, "add", {"contents": [contents_of("a")], **TURN})
    repeat(teller, 5, "a")

    assert teller.rules(there()) == {"repeat", "lost"}


def test_what_a_producer_was_told_to_be_stored_is_not_lost(teller: Teller) -> None:
    teller.add(0, "a", "b", is_lost=True, **TURN)
    repeat(teller, 5, "a", "b")

    assert teller.rules(there("a", "b")) == set()
    assert teller.rules(there("a")) == {"lost"}


def test_what_a_producer_was_told_to_be_stored_may_have_ended(teller: Teller) -> None:
    teller.add(0, "seen", "purged", "unseen", is_lost=True, **TURN)
    repeat(teller, 5, "seen", "purged", "unseen")
    teller.poll(10, "l", "seen")
    teller.outcome(12, "remove", "l", "seen")
    teller.call(14, "purge", {"state": "ready"}, {"count": 1})
    assert teller.rules(there()) == {"lost"}

    teller.call(16, "cancel", {"ids": ["unseen"]})
    assert teller.rules(there()) == set()


def test_item_with_a_key_that_a_producer_sent_again_may_have_been_a_duplicate(
    teller: Teller,
) -> None:
    teller.add(0, "a", is_lost=True, keys=["k"], **TURN)
    repeat(teller, 5, "a", keys=["k"])

    assert teller.rules(there()) == set()


# --- items that were polled or perhaps completed --------------------------------------------------


def test_item_of_a_lost_add_that_was_polled_is_not_lost(teller: Teller) -> None:
    teller.add(0, "a", is_lost=True)
    teller.poll(2, "l", "a")

    assert teller.rules(there("a")) == set()
    assert teller.rules(there()) == {"lost"}


@pytest.fixture
def perhaps(teller: Teller) -> Teller:
    teller.add(0, "a")
    teller.poll(2, "l", "a")
    teller.outcome(4, "complete", "l", "a", done=None)
    return teller


def test_complete_of_unknown_outcome_explains_a_missing_item_by_its_result(perhaps: Teller) -> None:
    assert perhaps.rules(there("a")) == set()
    assert perhaps.rules(FinalState(results=[FoundResult(0, "a", result_of("a"))])) == set()
    assert perhaps.rules(FinalState()) == {"lost"}


@pytest.mark.parametrize("other", ["remove", "cancel"])
def test_item_that_may_have_ended_otherwise_needs_no_result(perhaps: Teller, other: str) -> None:
    perhaps.call(6, other, {"ids": ["a"], "leases": ["l"]})

    assert perhaps.rules(FinalState()) == set()


def test_result_that_is_gone_unseen_may_be_of_a_complete_of_unknown_outcome(
    perhaps: Teller,
) -> None:
    gone = FinalState(first_offset=1, are_results_limited=True)
    assert perhaps.rules(gone) == set()

    perhaps.add(10, "b")
    perhaps.poll(12, "m", "b")
    perhaps.outcome(14, "complete", "m", "b")
    assert perhaps.rules(gone) == {"lost"}


def test_purge_and_results_that_are_gone_explain_as_many_items_as_they_can(perhaps: Teller) -> None:
    perhaps.call(6, "purge", {"state": "leased"}, {"count": 1})
    perhaps.add(10, "b")
    perhaps.poll(12, "m", "b")
    perhaps.outcome(14, "complete", "m", "b", done=None)

    assert perhaps.rules(FinalState(first_offset=1, are_results_limited=True)) == set()
    assert perhaps.rules(FinalState()) == {"lost"}
