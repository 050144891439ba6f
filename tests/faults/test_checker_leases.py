"""The checker on leases: one holder at a time, and a holder keeps what it holds."""

import pytest

from faults.final_state import FinalState, FoundItem
from tests.faults.told import LEASE_MS, Teller, contents_of

THERE = FinalState({"a": FoundItem(contents_of("a"), "ready")})


@pytest.fixture
def teller() -> Teller:
    told = Teller()
    told.add(0, "a")
    told.poll(10, "l", "a", lasts_ms=5)
    return told


def test_two_leases_that_are_alive_at_once_overlap(teller: Teller) -> None:
    teller.poll(50, "m", "a")

    assert teller.rules(THERE) == {"overlap"}


@pytest.mark.parametrize(("at_ms", "overlaps"), [(106, True), (107.5, False), (200, False)])
def test_lease_is_certainly_alive_from_the_begin_of_its_poll_but_for_the_slack(
    teller: Teller, at_ms: float, overlaps: bool
) -> None:
    teller.poll(at_ms, "m", "a")  # it ends 1 ms later; the lease is over at 110, slack is 2

    assert (teller.rules(THERE) == {"overlap"}) is overlaps


@pytest.mark.parametrize("end", ["remove", "release", "complete"])
@pytest.mark.parametrize("done", [True, None])
def test_lease_that_may_have_ended_leaves_room_for_another(
    teller: Teller, end: str, done: bool | None
) -> None:
    teller.outcome(20, end, "l", "a", done=done)
    teller.poll(50, "m", "a")

    assert "overlap" not in teller.rules(THERE)


def test_outcome_under_another_lease_does_not_end_this_one(teller: Teller) -> None:
    teller.outcome(20, "release", "other", "a", done=None)
    teller.poll(50, "m", "a")

    assert teller.rules(THERE) == {"overlap"}


@pytest.mark.parametrize(
    ("operation", "arguments", "answer"),
    [
        ("cancel", {"ids": ["a"]}, None),
        ("purge", {"state": "leased"}, None),
        ("hang_up", {"leases": ["l"]}, {}),
        ("clock_step", {"ms": 500}, {}),
    ],
)
def test_what_may_end_a_lease_early_leaves_room_for_another(
    teller: Teller,
    operation: str,
    arguments: dict[str, object],
    answer: dict[str, object] | None,
) -> None:
    teller.call(20, operation, arguments, answer)
    teller.poll(50, "m", "a")

    assert teller.rules(THERE) == set()


@pytest.mark.parametrize(
    ("operation", "arguments", "answer"),
    [
        ("purge", {"state": "ready"}, {"count": 0}),
        ("hang_up", {"leases": ["other"]}, {}),
        ("clock_step", {"ms": -500}, {}),
        ("restart", {}, {}),
    ],
)
def test_what_cannot_end_a_lease_early_leaves_none(
    teller: Teller,
    operation: str,
    arguments: dict[str, object],
    answer: dict[str, object],
) -> None:
    teller.call(20, operation, arguments, answer)
    teller.poll(50, "m", "a")

    assert teller.rules(THERE) == {"overlap"}


@pytest.mark.parametrize(
    ("killed", "is_bound", "rules"),
    [("w", True, set()), ("w", False, {"overlap"}), ("another", True, {"overlap"})],
)
def test_client_that_is_killed_loses_the_leases_that_are_bound_to_its_connection(
    killed: str, is_bound: bool, rules: set[str]
) -> None:
    """Whoever kills it does not know which those are."""
    teller = Teller()
    teller.add(0, "a")
    answer = {"lease": "l", "ids": ["a"], "contents": [contents_of("a")]}
    teller.call(10, "poll", {"lease_ms": LEASE_MS, "bound": is_bound}, answer, client="w")
    teller.call(20, "hang_up", {}, {}, queue="", client=killed)
    teller.poll(50, "m", "a")

    assert teller.rules(THERE) == rules


def test_lease_that_was_extended_is_alive_for_longer(teller: Teller) -> None:
    teller.call(90, "extend", {"leases": ["l"], "leases_ms": [500]}, {"done": [True]})
    teller.poll(300, "m", "a")

    assert teller.rules(THERE) == {"overlap"}


@pytest.mark.parametrize("answer", [{"done": [True]}, None])
def test_lease_that_may_have_been_shortened_is_over_sooner(
    teller: Teller, answer: dict[str, object] | None
) -> None:
    teller.call(20, "extend", {"leases": ["l"], "leases_ms": [5]}, answer)
    teller.poll(50, "m", "a")

    assert teller.rules(THERE) == set()


def test_extend_of_unknown_outcome_makes_nothing_certain(teller: Teller) -> None:
    teller.call(90, "extend", {"leases": ["l"], "leases_ms": [500]})
    teller.poll(300, "m", "a")

    assert teller.rules(THERE) == set()


def test_of_two_polls_at_once_only_one_can_have_the_item() -> None:
    teller = Teller()
    teller.add(0, "a")
    teller.poll(10, "l", "a", lasts_ms=20)
    teller.poll(15, "m", "a", lasts_ms=20)

    assert teller.rules(THERE) == {"overlap"}


def test_of_two_polls_at_once_a_short_lease_may_have_come_first() -> None:
    teller = Teller()
    teller.add(0, "a")
    teller.poll(10, "l", "a", lasts_ms=20, lease_ms=5)
    teller.poll(15, "m", "a", lasts_ms=20)

    assert teller.rules(THERE) == set()


def test_item_is_not_given_twice_under_one_lease(teller: Teller) -> None:
    teller.poll(500, "l", "a")

    assert teller.rules(THERE) == {"overlap"}


def test_holder_who_lost_the_item_to_another_is_not_believed(teller: Teller) -> None:
    teller.poll(200, "m", "a")
    teller.outcome(210, "release", "l", "a")

    assert teller.rules(THERE) == {"stale lease"}


def test_holder_whose_lease_ran_out_is_not_believed(teller: Teller) -> None:
    teller.outcome(15 + LEASE_MS + 3, "release", "l", "a")

    assert teller.rules(THERE) == {"stale lease"}


def test_holder_who_was_never_given_the_item_is_not_believed(teller: Teller) -> None:
    teller.outcome(20, "release", "other", "a")

    assert teller.rules(THERE) == {"stale lease"}


def test_holder_of_an_item_that_no_poll_was_ever_given_is_not_believed() -> None:
    teller = Teller()
    teller.add(0, "a")
    teller.outcome(5, "remove", "l", "a")

    assert teller.rules(FinalState()) == {"stale lease"}


def test_holder_whose_lease_is_alive_is_not_refused(teller: Teller) -> None:
    teller.outcome(50, "release", "l", "a", done=False)

    assert teller.rules(THERE) == {"lost lease"}


@pytest.mark.parametrize(
    ("restarted_at_ms", "rules"), [(49, set()), (51, set()), (30, {"lost lease"})]
)
def test_release_that_was_repeated_across_a_restart_may_be_refused(
    teller: Teller, restarted_at_ms: float, rules: set[str]
) -> None:
    teller.call(restarted_at_ms, "restart", {}, {}, queue="")
    teller.outcome(50, "release", "l", "a", done=False)

    assert teller.rules(THERE) == rules


def test_lease_that_is_alive_can_be_extended(teller: Teller) -> None:
    teller.call(50, "extend", {"leases": ["l"], "leases_ms": [5]}, {"done": [False]})

    assert teller.rules(THERE) == {"lost lease"}


@pytest.mark.parametrize("first", ["remove", "release"])
def test_holder_whose_first_report_was_lost_may_be_refused(teller: Teller, first: str) -> None:
    teller.outcome(50, first, "l", "a", done=None)
    teller.outcome(60, "release", "l", "a", done=False)

    assert teller.rules(THERE) == set()


def test_holder_may_be_refused_when_the_lease_may_have_run_out(teller: Teller) -> None:
    teller.outcome(109, "release", "l", "a", done=False)

    assert teller.rules(THERE) == set()


@pytest.mark.parametrize(
    ("told", "is_wrong"), [((1, 2), False), ((1, 4), False), ((1, 1), True), ((3, 2), True)]
)
def test_each_lease_of_an_item_is_counted(told: tuple[int, int], is_wrong: bool) -> None:
    teller = Teller()
    teller.add(0, "a")
    for at_ms, lease, count in zip((10, 30), "lm", told, strict=True):
        teller.poll(at_ms, lease, "a", deliveries=count)
        teller.outcome(at_ms + 10, "release", lease, "a")

    assert (teller.rules(THERE) == {"deliveries"}) is is_wrong


def test_leases_are_counted_anew_after_a_redrive() -> None:
    teller = Teller()
    teller.add(0, "a")
    teller.poll(10, "l", "a", deliveries=2)
    teller.outcome(20, "release", "l", "a")
    teller.call(25, "redrive", {"ids": []}, {"count": 1})
    teller.poll(30, "m", "a", deliveries=1)

    assert "deliveries" not in teller.rules(THERE)
