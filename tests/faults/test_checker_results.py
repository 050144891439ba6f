"""The checker on results, and on those who read them."""

from dataclasses import replace

import pytest

from faults.final_state import FinalState, FoundItem, FoundResult
from tests.faults.told import Teller, contents_of, result_of


@pytest.fixture
def teller() -> Teller:
    return Teller()


def there(*items: str) -> dict[str, FoundItem]:
    return {item: FoundItem(contents_of(item), "ready") for item in items}


@pytest.fixture
def done(teller: Teller) -> Teller:
    teller.add(0, "a")
    teller.poll(2, "l", "a")
    teller.outcome(4, "complete", "l", "a")
    return teller


RESULT = FoundResult(0, "a", result_of("a"))


def test_completed_item_has_its_result(done: Teller) -> None:
    assert done.rules(FinalState(results=[RESULT])) == set()


def test_completed_item_without_result_is_wrong(done: Teller) -> None:
    assert done.rules(FinalState()) == {"results"}


def test_item_has_one_result(done: Teller) -> None:
    twice = [RESULT, replace(RESULT, offset=1)]

    assert done.rules(FinalState(results=twice)) == {"results"}


def test_item_has_the_result_that_it_was_completed_with(done: Teller) -> None:
    other = replace(RESULT, result="another")

    assert done.rules(FinalState(results=[other])) == {"results", "result of nobody"}


def test_result_of_an_item_that_is_still_there_is_wrong(teller: Teller) -> None:
    teller.add(0, "a")
    teller.poll(2, "l", "a")
    teller.outcome(4, "complete", "l", "a", done=None)

    assert teller.rules(FinalState(there("a"), [RESULT])) == {"results"}


def test_result_may_stem_from_a_complete_whose_answer_was_lost(teller: Teller) -> None:
    teller.add(0, "a")
    teller.poll(2, "l", "a")
    teller.outcome(4, "complete", "l", "a", done=None)

    assert teller.rules(FinalState(results=[RESULT])) == set()
    assert teller.rules(FinalState(there("a"))) == set()


def test_result_that_nobody_gave_is_wrong(teller: Teller) -> None:
    teller.add(0, "a")
    teller.poll(2, "l", "a")
    teller.outcome(4, "remove", "l", "a")

    assert teller.rules(FinalState(results=[RESULT])) == {"result of nobody"}


def test_result_stays_at_its_offset(done: Teller) -> None:
    done.call(6, "read_results", {}, {"results": [[0, "a", result_of("a")]]})

    assert done.rules(FinalState(results=[RESULT])) == set()
    assert done.rules(FinalState(results=[replace(RESULT, offset=1)])) == {"results"}


def test_results_that_were_read_and_deleted_are_not_missed(done: Teller) -> None:
    done.call(6, "read_results", {}, {"results": [[0, "a", result_of("a")]]})
    done.call(8, "ack_results", {"reader": "r", "offset": 1}, {})

    assert done.rules(FinalState(first_offset=1)) == set()


def test_results_that_are_deleted_before_anybody_has_read_them_are_missed(done: Teller) -> None:
    assert done.rules(FinalState(first_offset=1)) == {"unread"}
    assert done.rules(FinalState(first_offset=1, are_results_limited=True)) == set()


# --- readers --------------------------------------------------------------------------------------

READ = [[0, "a", result_of("a")]]
GONE = FinalState(first_offset=1)


def read(teller: Teller, at_ms: float, reader: str) -> None:
    """All results, of which there is one."""
    teller.call(at_ms, "read_results", {"reader": reader}, {"results": READ})


def acknowledge(teller: Teller, at_ms: float, reader: str, offset: int) -> None:
    teller.call(at_ms, "ack_results", {"reader": reader, "offset": offset}, {})


@pytest.mark.parametrize(("known_at_ms", "rules"), [(6, {"unread"}), (9.5, set()), (12, set())])
def test_result_waits_for_every_reader_that_was_known_when_it_was_there(
    done: Teller, known_at_ms: float, rules: set[str]
) -> None:
    acknowledge(done, known_at_ms, "slow", 0)
    read(done, 10, "quick")
    acknowledge(done, 14, "quick", 1)

    assert done.rules(GONE) == rules
    assert done.rules(replace(GONE, are_results_limited=True)) == set()


@pytest.mark.parametrize("operation", ["ack_results", "drop_reader"])
def test_result_does_not_wait_for_a_reader_that_may_be_done(done: Teller, operation: str) -> None:
    acknowledge(done, 6, "slow", 0)
    read(done, 10, "quick")
    acknowledge(done, 14, "quick", 1)
    done.call(16, operation, {"reader": "slow", "offset": 1})

    assert done.rules(GONE) == set()


def test_reader_goes_on_where_it_has_acknowledged(done: Teller) -> None:
    read(done, 6, "r")
    acknowledge(done, 8, "r", 1)
    read(done, 10, "another")
    assert done.rules(FinalState(results=[RESULT])) == set()

    read(done, 12, "r")
    assert done.rules(FinalState(results=[RESULT])) == {"reader went back"}


@pytest.mark.parametrize(
    ("at_ms", "reader", "rules"),
    [
        (7, "r", set()),
        (10, "r", set()),
        (4, "r", {"reader went back"}),
        (14, "r", {"reader went back"}),
        (10, "another", {"reader went back"}),
    ],
)
def test_reader_that_may_have_been_dropped_begins_anew(
    done: Teller, at_ms: float, reader: str, rules: set[str]
) -> None:
    acknowledge(done, 6, "r", 1)
    done.call(at_ms, "drop_reader", {"reader": reader}, {"done": [True]})
    read(done, 12, "r")

    assert done.rules(FinalState(results=[RESULT])) == rules
