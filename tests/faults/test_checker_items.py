"""The checker on items: lost ones, phantoms, changed contents, and ends that do not hold."""

from pathlib import Path
from typing import Any

import pytest

from faults.checker import RULES, check
from faults.final_state import FinalState, FoundItem
from tests.faults.told import Teller, contents_of


@pytest.fixture
def teller() -> Teller:
    return Teller()


def there(*items: str, state: str = "ready") -> FinalState:
    return FinalState({item: FoundItem(contents_of(item), state) for item in items})


def test_every_rule_is_broken_by_a_test() -> None:
    tests = [path.read_text() for path in Path(__file__).parent.glob("test_checker_*.py")]

    assert [rule for rule in RULES if not any(f'{{"{rule}"' in test for test in tests)] == []


def test_queue_whose_end_nobody_has_read_cannot_be_checked(teller: Teller) -> None:
    teller.add(0, "a")

    with pytest.raises(ValueError, match="default"):
        check(teller.history, {})


def test_item_that_is_there_or_ended_is_not_lost(teller: Teller) -> None:
    teller.add(0, "present", "removed", "cancelled", "perhaps")
    teller.poll(2, "l", "removed", "perhaps")
    teller.outcome(4, "remove", "l", "removed")
    teller.outcome(6, "remove", "l", "perhaps", done=None)
    teller.call(8, "cancel", {"ids": ["cancelled"]}, {"done": [True]})

    assert teller.rules(there("present")) == set()


def test_acknowledged_item_that_is_nowhere_is_lost(teller: Teller) -> None:
    teller.add(0, "a", "b")

    assert teller.rules(there("a")) == {"lost"}


def test_refused_remove_does_not_explain_that_an_item_is_missing(teller: Teller) -> None:
    teller.add(0, "a")
    teller.poll(2, "l", "a")
    teller.outcome(500, "remove", "l", "a", done=False)

    assert teller.rules(there()) == {"lost"}


def test_add_that_was_lost_or_refused_promises_nothing(teller: Teller) -> None:
    teller.add(0, "a", is_lost=True)
    teller.refused(2, "add", {"contents": [contents_of("b")]})

    assert teller.rules(there()) == set()


def test_purge_explains_as_many_missing_items_as_it_took(teller: Teller) -> None:
    teller.add(0, "a", "b", "c")
    teller.call(2, "purge", {"state": "ready"}, {"count": 2})

    assert teller.rules(there("c")) == set()
    assert teller.rules(there()) == {"lost"}


@pytest.mark.parametrize(
    ("age_ms", "dropped", "rules"),
    [(90, 1, set()), (0, 1, {"lost"}), (95, 1, {"lost"}), (90, 0, {"lost"})],
)
def test_item_may_vanish_once_it_may_have_been_dead_for_long_enough(
    teller: Teller, age_ms: float, dropped: int, rules: set[str]
) -> None:
    """It certainly lived when a poll gave it."""
    teller.add(0, "a")
    teller.poll(10, "l", "a", lease_ms=5)
    totals = {"dead_dropped": dropped}

    final = FinalState(totals=totals, dead_age_ms=age_ms, read_at_ms=101)

    assert teller.rules(final) == rules


def test_item_may_vanish_early_if_the_clock_was_set_on(teller: Teller) -> None:
    teller.add(0, "a")
    teller.call(5, "clock_step", {"ms": 1000}, {})

    final = FinalState(totals={"dead_dropped": 1}, dead_age_ms=900, read_at_ms=100)

    assert teller.rules(final) == set()


def test_purge_explains_nothing_that_was_added_after_it(teller: Teller) -> None:
    teller.call(0, "purge", {"state": "ready"}, {"count": 1})
    teller.add(2, "a")

    assert teller.rules(there()) == {"lost"}


def test_purge_of_unknown_outcome_explains_whatever_is_missing(teller: Teller) -> None:
    teller.add(0, "a", "b", "c")
    teller.call(2, "purge", {"state": "ready"})

    assert teller.rules(there()) == set()


def test_item_of_an_add_that_was_lost_may_appear(teller: Teller) -> None:
    teller.add(0, "a", is_lost=True)
    teller.poll(2, "l", "a")

    assert teller.rules(there("a", state="leased")) == set()


def test_item_that_nobody_added_is_a_phantom(teller: Teller) -> None:
    teller.poll(2, "l", "a")

    assert teller.rules(there()) == {"phantom"}


def test_item_of_a_refused_add_is_a_phantom(teller: Teller) -> None:
    teller.refused(0, "add", {"contents": [contents_of("a")]})

    assert teller.rules(there("a")) == {"phantom"}


def test_item_that_appears_before_its_add_is_a_phantom(teller: Teller) -> None:
    teller.poll(0, "l", "a")
    teller.add(5, "a")

    assert teller.rules(there("a")) == {"phantom"}


def test_lost_add_of_one_item_does_not_explain_two(teller: Teller) -> None:
    teller.add(0, "a", is_lost=True)
    final = there("a")
    final.items["b"] = FoundItem(contents_of("a"), "ready")

    assert teller.rules(final) == {"phantom"}


def test_call_of_a_producer_that_is_repeated_explains_one_item(teller: Teller) -> None:
    turn: dict[str, Any] = {"producer": ["p", 0, 1]}
    teller.add(0, "a", is_lost=True, **turn)
    teller.add(5, "a", **turn)
    final = there("a")

    assert teller.rules(final) == set()
    final.items["b"] = FoundItem(contents_of("a"), "ready")
    assert teller.rules(final) == {"phantom"}


def test_item_with_other_contents_than_were_added_is_wrong(teller: Teller) -> None:
    teller.add(0, "a")

    assert teller.rules(FinalState({"a": FoundItem("others", "ready")})) == {"contents"}


@pytest.mark.parametrize("end", ["remove", "complete", "cancel"])
def test_item_that_has_ended_and_is_there_was_revived(teller: Teller, end: str) -> None:
    teller.add(0, "a")
    teller.poll(2, "l", "a")
    if end == "cancel":
        teller.call(4, "cancel", {"ids": ["a"]}, {"done": [True]})
    else:
        teller.outcome(4, end, "l", "a")

    assert "revived" in teller.rules(there("a"))


def test_item_that_is_polled_after_its_end_was_revived(teller: Teller) -> None:
    teller.add(0, "a")
    teller.poll(2, "l", "a")
    teller.outcome(4, "remove", "l", "a")
    teller.poll(300, "m", "a")

    assert teller.rules(there()) == {"revived"}


def test_poll_that_was_under_way_when_an_item_ended_may_have_been_first(teller: Teller) -> None:
    teller.add(0, "a")
    teller.poll(2, "l", "a", lasts_ms=50)
    teller.call(10, "cancel", {"ids": ["a"]}, {"done": [True]})

    assert teller.rules(there()) == set()


def test_two_who_were_told_that_they_ended_an_item_cannot_both_be_right(teller: Teller) -> None:
    teller.add(0, "a")
    teller.poll(2, "l", "a")
    teller.outcome(4, "remove", "l", "a")
    teller.call(6, "cancel", {"ids": ["a"]}, {"done": [True]})

    assert teller.rules(there()) == {"ended twice"}


def test_item_cannot_be_released_after_its_end(teller: Teller) -> None:
    teller.add(0, "a")
    teller.poll(2, "l", "a")
    teller.outcome(4, "remove", "l", "a")
    teller.outcome(6, "release", "l", "a")

    assert teller.rules(there()) == {"ended twice"}


def test_violation_tells_the_calls_that_prove_it_and_that_a_restart_lies_between(
    teller: Teller,
) -> None:
    teller.add(0, "a")
    teller.poll(2, "l", "a")
    teller.outcome(4, "remove", "l", "a")
    teller.call(10, "restart", {}, {}, lasts_ms=20, queue="")
    teller.poll(300, "m", "a")

    (violation,) = check(teller.history, {"default": there()})

    assert [call.operation for call in violation.calls] == ["remove", "poll"]
    assert "restarted 1 times" in str(violation)
    assert "remove(ids=['a'], leases=['l'])" in str(violation)
