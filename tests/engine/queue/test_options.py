"""Items with attempts and a backoff of their own, in place of what their queue says."""

from collections.abc import Callable, Iterator

import pytest

from queueber.db.families import Family
from queueber.model import (
    NO_OPTIONS,
    FailOutcome,
    ItemOptions,
    ItemState,
    NewItems,
    QueueSettings,
)
from tests.support.operations import cancel, delete_queue, find_item, peek, purge, redrive
from tests.support.rig import QUEUE, Rig

OPTIONS = Family.ITEM_OPTIONS


@pytest.fixture
def rig() -> Iterator[Rig]:
    made = Rig(QueueSettings(attempts_max=3, backoff_ms=(1000,)))
    yield made
    made.assert_sound()
    made.close()


def add(rig: Rig, *options: ItemOptions) -> list[bytes]:
    return list(rig.add_items(NewItems([b"x"] * len(options), options=options)).ids)


def fail_once(rig: Rig, item_id: bytes) -> FailOutcome:
    polled = rig.poll()
    assert list(polled.ids) == [item_id]
    return rig.fail([item_id], polled.lease_id)[0]


@pytest.mark.parametrize(("attempts", "expected"), [(1, 1), (2, 2), (None, 3), (5, 5)])
def test_an_item_is_dead_after_as_many_failures_as_it_or_else_its_queue_allows(
    rig: Rig, attempts: int | None, expected: int
) -> None:
    (item_id,) = add(rig, ItemOptions(attempts, (0,)))

    outcomes = []
    while FailOutcome.DIED not in outcomes:
        outcomes.append(fail_once(rig, item_id))

    assert len(outcomes) == expected
    (letter,) = peek(rig.engine, rig.queue, ItemState.DEAD, b"", 10, 1000)[0]
    times = "once" if expected == 1 else f"{expected} times"
    assert letter.reason == f"failed {times} (attempts_max)"


def test_an_item_without_a_limit_outlives_that_of_its_queue(rig: Rig) -> None:
    (item_id,) = add(rig, ItemOptions(0, (0,)))

    assert {fail_once(rig, item_id) for _ in range(10)} == {FailOutcome.RETRIED}


def test_an_item_comes_back_after_its_own_delays_of_which_the_last_repeats(rig: Rig) -> None:
    (item_id,) = add(rig, ItemOptions(0, (10, 70)))
    waited_ms = []
    for _ in range(3):
        assert fail_once(rig, item_id) is FailOutcome.RETRIED
        (hidden,) = peek(rig.engine, rig.queue, ItemState.DELAYED, b"", 10, 1000)[0]
        waited_ms.append(hidden.at_ms - rig.now_ms)
        rig.now_ms = hidden.at_ms
        rig.sweep_all()

    assert waited_ms == [10, 70, 70]


def test_the_delay_that_a_worker_names_comes_before_that_of_the_item(rig: Rig) -> None:
    (item_id,) = add(rig, ItemOptions(0, (10,)))
    rig.fail([item_id], rig.poll().lease_id, delay_ms=500)

    (hidden,) = peek(rig.engine, rig.queue, ItemState.DELAYED, b"", 10, 1000)[0]
    assert hidden.at_ms == rig.now_ms + 500


def test_a_lease_that_ends_unfinished_counts_as_an_attempt_of_the_item_s_own(rig: Rig) -> None:
    add(rig, ItemOptions(1))
    rig.poll(lease_ms=100)

    rig.now_ms += 100
    rig.sweep_all()

    assert rig.stats().dead == 1


def test_only_items_that_have_options_are_stored_with_some(rig: Rig) -> None:
    first, _, third = add(rig, ItemOptions(1), NO_OPTIONS, ItemOptions(None, (5,)))

    assert [key[4:] for key in rig.keys(OPTIONS)] == [first, third]


def test_a_duplicate_leaves_the_first_item_its_options(rig: Rig) -> None:
    for attempts in (1, 2):
        rig.add_items(NewItems([b"x"], keys=["k"], options=[ItemOptions(attempts)]))

    assert fail_once(rig, rig.ready_ids()[0]) is FailOutcome.DIED


def test_dead_letters_keep_their_options_when_they_are_redriven(rig: Rig) -> None:
    (item_id,) = add(rig, ItemOptions(1))
    fail_once(rig, item_id)
    redrive(rig.engine, rig.queue, [item_id], rig.now_ms)

    assert fail_once(rig, item_id) is FailOutcome.DIED


def complete(rig: Rig, ids: list[bytes]) -> None:
    polled = rig.poll(len(ids))
    rig.complete(ids, polled.lease_id)


def remove(rig: Rig, ids: list[bytes]) -> None:
    polled = rig.poll(len(ids))
    rig.remove(ids, polled.lease_id)


ENDS: dict[str, Callable[[Rig, list[bytes]], object]] = {
    "complete": complete,
    "remove": remove,
    "cancel": lambda rig, ids: cancel(rig.engine, rig.queue, ids, rig.now_ms),
    "purge": lambda rig, ids: purge(rig.engine, rig.queue, ItemState.READY, 10, rig.now_ms),
}


@pytest.mark.parametrize("how", ENDS)
def test_options_go_when_the_item_goes(rig: Rig, how: str) -> None:
    ids = add(rig, ItemOptions(1), ItemOptions(1, (5,)))

    ENDS[how](rig, ids)

    assert rig.keys(OPTIONS) == []


def test_options_go_with_their_queue() -> None:
    rig = Rig()
    add(rig, ItemOptions(1))

    assert delete_queue(rig.engine, QUEUE)

    assert rig.keys(OPTIONS) == []
    rig.close()


def test_peek_and_find_tell_what_an_item_has_of_its_own(rig: Rig) -> None:
    own = ItemOptions(0, (10, 70), timeout_ms=30, expires_ms=500)
    has_some, has_none = add(rig, own, NO_OPTIONS)
    added_at_ms = rig.now_ms

    def told(state: ItemState) -> list[tuple[bytes, int | None, tuple[int, ...], int, int]]:
        peeked = peek(rig.engine, rig.queue, state, b"", 10, 1000)[0]
        found = [find_item(rig.engine, rig.queue, each.id).found for each in peeked]
        assert [each and each.item for each in found] == peeked
        return [
            (
                each.id,
                each.attempts_max,
                tuple(each.backoff_ms),
                each.timeout_ms,
                each.expires_at_ms,
            )
            for each in peeked
        ]

    nothing = (has_none, None, (), 0, 0)
    assert told(ItemState.READY) == [(has_some, 0, (10, 70), 30, added_at_ms + 500), nothing]
    # Once it was leased it does not expire any more, also when it is back.
    polled = rig.poll(2)
    assert told(ItemState.LEASED) == [(has_some, 0, (10, 70), 30, 0), nothing]
    rig.release([has_some, has_none], polled.lease_id)
    assert told(ItemState.READY) == [(has_some, 0, (10, 70), 30, 0), nothing]


def test_item_that_expired_is_told_with_what_it_had_of_its_own(rig: Rig) -> None:
    (item_id,) = add(rig, ItemOptions(2, expires_ms=500))
    rig.now_ms += 500
    rig.sweep_all()

    (letter,) = peek(rig.engine, rig.queue, ItemState.DEAD, b"", 10, 1000)[0]
    assert (letter.id, letter.attempts_max, letter.expires_at_ms) == (item_id, 2, 0)
