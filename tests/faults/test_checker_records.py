"""The checker on what is kept of items: results, receipts, keys, producers, totals."""

from dataclasses import replace

import pytest

from faults.final_state import FinalState, FoundItem, FoundReceipt, FoundResult
from tests.faults.told import Teller, contents_of, result_of


@pytest.fixture
def teller() -> Teller:
    return Teller()


def there(*items: str) -> dict[str, FoundItem]:
    return {item: FoundItem(contents_of(item), "ready") for item in items}


# --- results --------------------------------------------------------------------------------------


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
    assert done.rules(FinalState(first_offset=1)) == {"results"}
    assert done.rules(FinalState(first_offset=1, are_results_limited=True)) == set()


# --- receipts -------------------------------------------------------------------------------------

RECEIPT = FoundReceipt(added=2, done=1, dead=0, live=1, complete=False)


@pytest.fixture
def batch(teller: Teller) -> Teller:
    teller.add(0, "a", "b", batch="x")
    teller.poll(2, "l", "a")
    teller.outcome(4, "remove", "l", "a")
    return teller


def receipts(found: FoundReceipt) -> FinalState:
    return FinalState({"b": FoundItem(contents_of("b"), "ready", "x")}, receipts={"x": found})


def test_receipt_that_fits_is_right(batch: Teller) -> None:
    assert batch.rules(receipts(RECEIPT)) == set()


@pytest.mark.parametrize(
    ("found", "rules"),
    [
        (replace(RECEIPT, dead=1), {"sums"}),
        (replace(RECEIPT, complete=True), {"sums"}),
        (replace(RECEIPT, live=0, dead=1), {"sums"}),
        (replace(RECEIPT, added=3, dead=1), {"receipt"}),
        (replace(RECEIPT, added=1, done=0), {"receipt"}),
        (replace(RECEIPT, done=0, dead=1), {"receipt"}),
    ],
)
def test_receipt_that_does_not_fit_is_wrong(
    batch: Teller, found: FoundReceipt, rules: set[str]
) -> None:
    assert batch.rules(receipts(found)) == rules


def test_receipt_may_count_an_add_whose_answer_was_lost(batch: Teller) -> None:
    batch.add(6, "c", is_lost=True, batch="x")
    final = receipts(replace(RECEIPT, added=3, live=2))
    final.items["c"] = FoundItem(contents_of("c"), "ready", "x")

    assert batch.rules(final) == set()


def receipt_call(teller: Teller, at_ms: float, found: FoundReceipt) -> None:
    told = {name: getattr(found, name) for name in ("added", "done", "dead", "live", "complete")}
    teller.call(at_ms, "receipt", {"batch": "x"}, told)


def test_receipt_does_not_go_back(teller: Teller) -> None:
    teller.add(0, "a", is_lost=True, batch="x")
    receipt_call(teller, 5, FoundReceipt(1, 1, 0, 0, complete=True))
    receipt_call(teller, 10, FoundReceipt(1, 0, 0, 1, complete=False))

    assert teller.rules(FinalState()) == {"receipt went back"}


def test_dead_letters_leave_a_receipt_only_when_they_are_redriven(teller: Teller) -> None:
    teller.add(0, "a", batch="x")
    receipt_call(teller, 5, FoundReceipt(1, 0, 1, 0, complete=True))
    final = FinalState(
        {"a": FoundItem(contents_of("a"), "ready", "x")},
        receipts={"x": FoundReceipt(1, 0, 0, 1, complete=False)},
    )

    assert teller.rules(final) == {"receipt went back"}
    teller.call(8, "redrive", {"ids": []}, {"count": 1})
    assert teller.rules(final) == set()


# --- keys, producers, totals ----------------------------------------------------------------------


@pytest.mark.parametrize(("at_ms", "rules"), [(50, {"key"}), (101, set()), (500, set())])
def test_key_stands_for_one_item_within_its_window(
    teller: Teller, at_ms: float, rules: set[str]
) -> None:
    teller.add(0, "a", keys=["k"])
    teller.add(at_ms, "b", keys=["k"])

    assert teller.rules(FinalState(there("a", "b"), dedup_window_ms=100)) == rules


def test_duplicate_is_told_the_item_that_is_there(teller: Teller) -> None:
    teller.add(0, "a", keys=["k"])
    arguments = {"contents": ["others"], "keys": ["k"]}
    teller.call(5, "add", arguments, {"ids": ["a"], "duplicates": [True]})

    assert teller.rules(FinalState(there("a"), dedup_window_ms=100)) == set()


def test_window_of_a_key_is_not_certain_when_the_clock_steps(teller: Teller) -> None:
    teller.add(0, "a", keys=["k"])
    teller.call(5, "clock_step", {"ms": 200}, {}, queue="")
    teller.add(50, "b", keys=["k"])

    assert teller.rules(FinalState(there("a", "b"), dedup_window_ms=100)) == set()


def test_call_that_a_producer_repeats_is_answered_as_before(teller: Teller) -> None:
    turn = {"contents": ["same"], "producer": ["p", 1, 1]}
    teller.call(0, "add", turn, {"ids": ["a"]})
    teller.call(5, "add", turn, {"ids": ["b"]})
    final = FinalState({"a": FoundItem("same", "ready"), "b": FoundItem("same", "ready")})

    assert teller.rules(final) == {"repeat"}


def test_answer_of_a_producer_that_is_forgotten_has_no_ids(teller: Teller) -> None:
    turn = {"contents": ["same"], "producer": ["p", 1, 1]}
    teller.call(0, "add", turn, {"ids": ["a"]})
    teller.call(5, "add", turn, {"ids": []})

    assert teller.rules(FinalState({"a": FoundItem("same", "ready")})) == set()


@pytest.mark.parametrize(
    ("total", "right"), [("added", 2), ("removed", 1), ("completed", 0), ("cancelled", 0)]
)
def test_totals_count_what_was_done(batch: Teller, total: str, right: int) -> None:
    final = receipts(RECEIPT)
    for found in (right - 1, right, right + 1):
        final.totals = {total: found}
        assert batch.rules(final) == (set() if found == right else {"totals"})


def test_totals_may_count_what_was_lost_on_the_way(teller: Teller) -> None:
    teller.add(0, "a", is_lost=True)
    teller.call(2, "purge", {"state": "ready"})

    assert teller.rules(FinalState(totals={"added": 1, "cancelled": 1})) == set()
    assert teller.rules(FinalState(totals={"added": 2})) == {"totals"}
