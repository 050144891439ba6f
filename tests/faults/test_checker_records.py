"""The checker on what is kept of items: receipts, keys, producers, totals."""

from dataclasses import replace

import pytest

from faults.final_state import FinalState, FoundItem, FoundReceipt
from queueber.limits import BATCH_KEEP_MS
from tests.faults.told import Teller, contents_of


@pytest.fixture
def teller() -> Teller:
    return Teller()


def there(*items: str) -> dict[str, FoundItem]:
    return {item: FoundItem(contents_of(item), "ready") for item in items}


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


@pytest.mark.parametrize(
    ("step_ms", "rules"), [(0, {"receipt"}), (BATCH_KEEP_MS, set()), (-BATCH_KEEP_MS, {"receipt"})]
)
def test_batch_is_not_forgotten_before_its_time(
    batch: Teller, step_ms: float, rules: set[str]
) -> None:
    batch.call(8, "clock_step", {"ms": step_ms}, {}, queue="")
    final = replace(receipts(RECEIPT), receipts={}, unknown_batches=["x", "another"])

    assert batch.rules(final) == rules


def test_batch_whose_receipt_was_read_is_known(teller: Teller) -> None:
    receipt_call(teller, 5, FoundReceipt(0, 0, 0, 0, complete=True))

    assert teller.rules(FinalState(unknown_batches=["x"])) == {"receipt"}


def test_batch_that_was_forgotten_begins_anew(batch: Teller) -> None:
    final = replace(receipts(RECEIPT), receipts={}, unknown_batches=["x"])
    batch.call(8, "forget_batch", {"batch": "x"}, {"forgotten": False})
    assert batch.rules(final) == {"receipt"}
    batch.call(9, "forget_batch", {"batch": "x"}, {"forgotten": True})
    assert batch.rules(final) == set()


def test_receipt_may_be_lower_after_the_batch_was_forgotten(teller: Teller) -> None:
    teller.add(0, "a", batch="x")
    receipt_call(teller, 5, FoundReceipt(1, 1, 0, 0, complete=True))
    receipt_call(teller, 10, FoundReceipt(0, 0, 0, 0, complete=True))
    rules = teller.rules(FinalState())
    assert {"receipt", "receipt went back"} <= rules

    teller.call(7, "forget_batch", {"batch": "x"}, {"forgotten": True})

    assert not {"receipt", "receipt went back"} & teller.rules(FinalState())


def test_batch_with_a_live_item_is_not_forgotten(teller: Teller) -> None:
    teller.add(0, "a", batch="x")
    teller.call(7, "forget_batch", {"batch": "x"}, {"forgotten": True})
    before = teller.rules(FinalState())

    teller.poll(10, "lease", "a")

    assert teller.rules(FinalState()) - before == {"forgotten too early"}


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
