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


@pytest.mark.parametrize(("at_ms", "rules"), [(20, {"early"}), (70, set())])
def test_rescheduled_item_is_not_given_before_its_new_time(
    teller: Teller, at_ms: float, rules: set[str]
) -> None:
    teller.add(0, "a", delays_ms=[100])
    reschedule(teller, 5, 50)
    teller.poll(at_ms, "l", "a")

    assert teller.rules(THERE) == rules


@pytest.mark.parametrize(("is_done", "rules"), [(True, set()), (None, set()), (False, {"early"})])
def test_item_that_may_run_now_is_not_early(
    teller: Teller, is_done: bool | None, rules: set[str]
) -> None:
    teller.add(0, "a", delays_ms=[100])
    reschedule(teller, 5, 0, is_done)
    teller.poll(20, "l", "a")

    assert teller.rules(THERE) == rules


def reschedule(teller: Teller, at_ms: float, delay_ms: float, is_done: bool | None = True) -> None:
    answer = None if is_done is None else {"done": [is_done]}
    teller.call(at_ms, "reschedule", {"ids": ["a"], "delays_ms": [delay_ms]}, answer)


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


@pytest.mark.parametrize(("at_ms", "rules"), [(45, set()), (60, {"not expired"})])
def test_item_is_not_given_for_the_first_time_after_it_expired(
    teller: Teller, at_ms: float, rules: set[str]
) -> None:
    teller.add(0, "a", expires_ms=[50])
    teller.poll(at_ms, "l", "a", deliveries=1)

    assert teller.rules(THERE) == rules


def test_item_that_was_leased_in_time_or_redriven_may_be_given_later(teller: Teller) -> None:
    teller.add(0, "a", "b", expires_ms=[50, 50])
    teller.poll(60, "l", "a", deliveries=2)
    teller.call(70, "redrive", {"ids": ["b"]}, {})
    teller.poll(80, "m", "b", deliveries=1)

    found = {name: FoundItem(contents_of(name), "ready") for name in ("a", "b")}
    assert teller.rules(FinalState(found)) == set()


def test_expiry_is_not_certain_when_the_clock_steps_back(teller: Teller) -> None:
    teller.add(0, "a", expires_ms=[50])
    teller.call(10, "clock_step", {"ms": -100}, {}, queue="")
    teller.poll(60, "l", "a", deliveries=1)

    assert teller.rules(THERE) == set()
