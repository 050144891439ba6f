"""The checker on times: delays, dead letters, pauses."""

from typing import Any

import pytest

from faults.final_state import FinalState, FoundItem
from tests.faults.told import Teller, contents_of

THERE = FinalState({"a": FoundItem(contents_of("a"), "ready")})


@pytest.fixture
def teller() -> Teller:
    return Teller()


@pytest.mark.parametrize(("at_ms", "rules"), [(5, {"early"}), (46, {"early"}), (48, set())])
def test_item_is_not_given_before_its_delay_has_passed(
    teller: Teller, at_ms: float, rules: set[str]
) -> None:
    teller.add(0, "a", delays_ms=[50])
    teller.poll(at_ms, "l", "a")

    assert teller.rules(THERE) == rules


def test_delay_may_count_from_the_first_attempt_of_a_producer(teller: Teller) -> None:
    turn: dict[str, Any] = {"producer": ["p", 1, 1], "delays_ms": [50]}
    teller.add(0, "a", is_lost=True, **turn)
    teller.add(40, "a", **turn)
    teller.poll(55, "l", "a")

    assert teller.rules(THERE) == set()


def test_delay_is_not_certain_when_the_clock_steps_forward(teller: Teller) -> None:
    teller.add(0, "a", delays_ms=[50])
    teller.call(2, "clock_step", {"ms": 100}, {}, queue="")
    teller.poll(10, "l", "a")

    assert teller.rules(THERE) == set()


@pytest.mark.parametrize(("at_ms", "rules"), [(10, {"early"}), (60, set())])
def test_failed_item_is_not_given_before_its_delay_has_passed(
    teller: Teller, at_ms: float, rules: set[str]
) -> None:
    teller.add(0, "a")
    teller.poll(1, "l", "a")
    teller.fail(5, "l", "a", "retried", delay_ms=50)
    teller.poll(at_ms, "m", "a")

    assert teller.rules(THERE) == rules


def test_dead_letter_is_not_given_to_anybody(teller: Teller) -> None:
    teller.add(0, "a")
    teller.poll(1, "l", "a")
    teller.fail(5, "l", "a", "died")
    teller.poll(10, "m", "a")

    assert teller.rules(THERE) == {"not dead"}


@pytest.mark.parametrize(
    ("state", "rules"), [("dead", set()), ("ready", {"not dead"}), ("leased", {"not dead"})]
)
def test_dead_letter_that_nobody_has_redriven_is_dead_at_the_end(
    teller: Teller, state: str, rules: set[str]
) -> None:
    teller.add(0, "a")
    teller.poll(1, "l", "a")
    teller.fail(5, "l", "a", "died")
    final = FinalState({"a": FoundItem(contents_of("a"), state)})

    assert teller.rules(final) == rules
    teller.call(7, "redrive", {"ids": []}, {"count": 1})
    assert teller.rules(final) == set()


@pytest.mark.parametrize(
    ("ids", "answer", "rules"),
    [
        ([], {"count": 1}, set()),
        (["a"], None, set()),
        (["b"], {"count": 1}, {"not dead"}),
    ],
)
def test_dead_letter_that_may_be_redriven_may_be_given(
    teller: Teller, ids: list[str], answer: dict[str, int] | None, rules: set[str]
) -> None:
    teller.add(0, "a")
    teller.poll(1, "l", "a")
    teller.fail(5, "l", "a", "died")
    teller.call(7, "redrive", {"ids": ids}, answer)
    teller.poll(10, "m", "a")

    assert teller.rules(THERE) == rules


@pytest.mark.parametrize(
    ("for_ms", "at_ms", "rules"),
    [(0, 20, {"not paused"}), (50, 20, {"not paused"}), (50, 60, set()), (0, 10.5, set())],
)
def test_nobody_is_given_anything_while_the_queue_is_certainly_paused(
    teller: Teller, for_ms: float, at_ms: float, rules: set[str]
) -> None:
    teller.add(0, "a")
    teller.call(10, "pause", {"for_ms": for_ms}, {})
    teller.poll(at_ms, "l", "a")

    assert teller.rules(THERE) == rules


@pytest.mark.parametrize(
    ("operation", "arguments", "answer"),
    [
        ("resume", {}, None),
        ("pause", {"for_ms": 1}, {}),
        ("clock_step", {"ms": 100}, {}),
    ],
)
def test_pause_that_may_be_over_is_over(
    teller: Teller,
    operation: str,
    arguments: dict[str, object],
    answer: dict[str, object] | None,
) -> None:
    teller.add(0, "a")
    teller.call(10, "pause", {"for_ms": 0}, {})
    teller.call(15, operation, arguments, answer)
    teller.poll(20, "l", "a")

    assert teller.rules(THERE) == set()
