"""Rates by an attribute: so many items of a cap key in a time, whatever the others do."""

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from queueber.db.families import Family
from queueber.db.records.keys import DUE_BYTES
from queueber.engine.caps.cap_keys import KeyRecord
from queueber.errors import FailedPrecondition
from queueber.model import NOTHING_POLLED, ItemState, NewItems, Polled, QueueSettings
from tests.support.operations import cancel, configure_queue, pause, purge, resume
from tests.support.rig import QUEUE, Rig

TWO_A_SECOND = QueueSettings(
    cap_by="who", cap_by_rate_items=2, cap_by_rate_ms=1000, backoff_ms=(0,), isolation=False
)
EVER = b"\xff" * 8
TOKEN_MS = 500


@pytest.fixture
def rig() -> Iterator[Rig]:
    made = Rig(TWO_A_SECOND)
    yield made
    made.close()


def add(rig: Rig, whos: str, **columns: Any) -> list[bytes]:
    """An item for each letter; one that is a dot has no cap key. Contents are letter and number."""
    contents = [f"{who}{at}".encode() for at, who in enumerate(whos)]
    attributes = [{} if who == "." else {"who": who} for who in whos]
    return list(rig.add_items(NewItems(contents, attributes=attributes, **columns)).ids)


def told(polled: Polled) -> str:
    return " ".join(each.decode() for each in polled.contents)


def set_caps(rig: Rig, **caps: Any) -> None:
    configure_queue(rig.engine, QUEUE, replace(rig.queue.settings, **caps), rig.now_ms)


def pass_time(rig: Rig, ms: int) -> None:
    """The sweeper does what is due meanwhile, and not earlier."""
    end_ms = rig.now_ms + ms
    while rig.engine.agenda.next_ms() <= end_ms:
        rig.now_ms = max(rig.now_ms, rig.engine.agenda.next_ms())
        rig.sweep_all()
    rig.now_ms = end_ms
    rig.assert_sound()


def records(rig: Rig) -> list[KeyRecord]:
    found = rig.store.scan(Family.CAP_KEYS, b"", EVER, 100)
    return [KeyRecord(value) for _, value in found]


def dues(rig: Rig) -> int:
    return len(rig.store.scan(Family.CAP_DUE, b"", EVER, 100))


def test_polls_pass_over_a_key_that_has_spent_its_rate(rig: Rig) -> None:
    add(rig, "aaaab.ab")

    assert told(rig.poll(100)) == "a0 a1 b4 .5 b7"
    assert rig.poll(100) == NOTHING_POLLED
    assert (rig.stats().ready, rig.stats().parked) == (3, 3)
    rig.assert_sound()


def test_an_item_is_let_go_with_each_token_and_the_queue_is_looked_at_then(rig: Rig) -> None:
    add(rig, "aaaaa")
    rig.poll(10, lease_ms=60_000)
    assert rig.engine.agenda.next_ms() == rig.now_ms + TOKEN_MS

    pass_time(rig, TOKEN_MS - 1)
    assert rig.poll(10) == NOTHING_POLLED
    pass_time(rig, 1)
    assert rig.queue.leasable(rig.now_ms) == 1
    assert told(rig.poll(10)) == "a2"
    pass_time(rig, TOKEN_MS)
    assert told(rig.poll(10)) == "a3"


@pytest.mark.parametrize(("items", "ms"), [(3, 1000), (7, 1000), (999, 1000), (1, 3_600_000)])
def test_a_poll_may_have_a_whole_burst(rig: Rig, items: int, ms: int) -> None:
    """Also where a token comes back after a part of a microsecond."""
    set_caps(rig, cap_by_rate_items=items, cap_by_rate_ms=ms)
    add(rig, "a" * 1000)

    assert rig.poll(1000).count == items
    rig.assert_sound()


def test_what_ends_before_it_brings_no_token_back(rig: Rig) -> None:
    ids = add(rig, "aaa")
    lease = rig.poll(10)
    rig.remove(ids[:1], lease.lease_id)
    rig.release(ids[1:2], lease.lease_id)

    assert rig.poll(10) == NOTHING_POLLED
    assert rig.stats().parked == 2
    rig.assert_sound()


def test_a_rate_is_not_passed_by_what_was_let_go_while_nobody_polled(rig: Rig) -> None:
    """Tokens are taken by leases, and only a burst of them is ever set aside."""
    add(rig, "a" * 20)
    rig.poll(2)
    pause(rig.engine, rig.queue, rig.now_ms + 3_600_000)
    pass_time(rig, 60_000)
    resume(rig.engine, rig.queue)

    assert told(rig.poll(20)) == "a2 a3"
    assert rig.poll(20) == NOTHING_POLLED
    pass_time(rig, TOKEN_MS)
    assert told(rig.poll(20)) == "a4"


def test_an_item_that_was_let_go_and_is_cancelled_gives_its_token_to_the_next(rig: Rig) -> None:
    ids = add(rig, "aaaa")
    rig.poll(10)
    pass_time(rig, TOKEN_MS)

    assert cancel(rig.engine, rig.queue, [ids[2]], rig.now_ms) == [True]
    rig.assert_sound()
    assert told(rig.poll(10)) == "a3"
    assert [key.tokens for key in records(rig)] == [0]


@pytest.mark.parametrize("state", list(ItemState))
def test_purge_leaves_no_token_behind(rig: Rig, state: ItemState) -> None:
    add(rig, "aaaaaa")
    rig.poll(4, lease_ms=60_000)
    pass_time(rig, TOKEN_MS)
    while purge(rig.engine, rig.queue, state, 2, rig.now_ms)[1]:
        rig.assert_sound()
    rig.assert_sound()


def test_items_go_in_the_order_of_priority_and_time_and_none_overtakes(rig: Rig) -> None:
    set_caps(rig, cap_by_rate_items=1, cap_by_rate_ms=TOKEN_MS)
    add(rig, "a")
    order = [told(rig.poll(1, lease_ms=60_000))]
    add(rig, "aaa", priorities=[5, 9, 5])
    rig.poll(10)
    rig.now_ms += 1
    add(rig, "a")
    for _ in range(4):
        pass_time(rig, TOKEN_MS)
        order.append(told(rig.poll(10, lease_ms=60_000)))

    assert order == ["a0", "a1", "a0", "a2", "a0"]


def test_both_caps_hold_together(rig: Rig) -> None:
    set_caps(rig, cap_by_concurrency_max=1)
    ids = add(rig, "aaaa")
    first = rig.poll(10, lease_ms=60_000)
    assert told(first) == "a0"
    pass_time(rig, 10_000)
    assert rig.poll(10) == NOTHING_POLLED

    rig.remove(ids[:1], first.lease_id)
    second = rig.poll(10, lease_ms=60_000)
    rig.remove(ids[1:2], second.lease_id)
    third = rig.poll(10, lease_ms=60_000)
    rig.remove(ids[2:3], third.lease_id)

    assert (told(second), told(third)) == ("a1", "a2")
    assert rig.poll(10) == NOTHING_POLLED
    rig.assert_sound()
    pass_time(rig, TOKEN_MS)
    assert told(rig.poll(10)) == "a3"


def test_what_is_spent_survives_a_restart(rig: Rig) -> None:
    add(rig, "aaaaa")
    rig.poll(2)
    rig.reopen()

    assert rig.poll(10) == NOTHING_POLLED
    pass_time(rig, TOKEN_MS)
    rig.reopen()
    rig.assert_sound()
    assert told(rig.poll(10)) == "a2"
    assert rig.engine.agenda.next_ms() <= rig.now_ms + TOKEN_MS


def test_a_key_is_forgotten_when_nothing_is_leased_and_its_bucket_is_full(rig: Rig) -> None:
    ids = add(rig, "ab")
    lease = rig.poll(2, lease_ms=60_000)
    pass_time(rig, 5000)
    assert [key.slots for key in records(rig)] == [1, 1]

    rig.remove(ids, lease.lease_id)
    assert records(rig) == []
    ids = add(rig, "a")
    rig.remove(ids, rig.poll(1).lease_id)
    assert (len(records(rig)), dues(rig)) == (1, 1)
    pass_time(rig, TOKEN_MS)

    assert (records(rig), dues(rig), rig.queue.counters.cap_dues) == ([], 0, 0)


def test_a_key_in_use_moves_its_entry_only_once_in_a_while(rig: Rig) -> None:
    places = []
    for _ in range(4):
        ids = add(rig, "a")
        rig.remove(ids, rig.poll(1).lease_id)
        places.append(rig.store.scan(Family.CAP_DUE, b"", EVER, 10))
        rig.now_ms += 100

    assert places[0] == places[1] == places[2]
    assert len(places[0][0][0]) == 4 + DUE_BYTES


def test_a_clock_that_was_set_back_costs_one_token(rig: Rig) -> None:
    add(rig, "aaaab")
    rig.poll(2, lease_ms=100)
    rig.now_ms -= 86_400_000
    rig.reopen()
    rig.sweep_all()
    rig.assert_sound()

    assert told(rig.poll(10)) == "b4"
    pass_time(rig, TOKEN_MS)
    assert told(rig.poll(10)) == "a2"


def test_a_rate_that_is_raised_is_felt_at_once(rig: Rig) -> None:
    set_caps(rig, cap_by_rate_items=1, cap_by_rate_ms=3_600_000)
    add(rig, "aaa")
    rig.poll(10, lease_ms=60_000)
    rig.now_ms += 10
    set_caps(rig, cap_by_rate_ms=1000)
    pass_time(rig, 1000)
    assert told(rig.poll(10)) == "a1"

    set_caps(rig, cap_by_rate_items=0)
    rig.sweep_all()
    assert told(rig.poll(10)) == "a2"
    rig.assert_sound()


def test_a_rate_that_is_lowered_holds_for_what_was_let_go(rig: Rig) -> None:
    add(rig, "aaaaaa")
    rig.poll(10, lease_ms=60_000)
    pass_time(rig, 1000)
    assert rig.queue.counters.slots == 4
    set_caps(rig, cap_by_rate_items=1, cap_by_rate_ms=10_000)
    rig.sweep_all()

    polled = [told(rig.poll(10, lease_ms=60_000)) for _ in range(2)]
    rig.assert_sound()
    pass_time(rig, 9_999)
    polled.append(told(rig.poll(10)))
    pass_time(rig, 1)
    assert [*polled, told(rig.poll(10))] == ["a2", "", "", "a3"]


def test_a_rate_after_a_cap_counts_what_was_let_go_before(rig: Rig) -> None:
    set_caps(rig, cap_by_rate_items=0, cap_by_concurrency_max=1)
    ids = add(rig, "aaa")
    lease = rig.poll(10)
    rig.remove(ids[:1], lease.lease_id)  # lets a1 go, without a token
    set_caps(rig, cap_by_rate_items=1, cap_by_rate_ms=1000, cap_by_concurrency_max=0)
    rig.sweep_all()

    assert told(rig.poll(10)) == "a1"
    assert rig.poll(10) == NOTHING_POLLED
    rig.assert_sound()


def test_the_attribute_can_be_changed_once_nothing_is_leased(rig: Rig) -> None:
    ids = add(rig, "ab")
    lease = rig.poll(2)
    with pytest.raises(FailedPrecondition, match="set capByConcurrencyMax and capByRateItems to 0"):
        set_caps(rig, cap_by="other")
    rig.remove(ids, lease.lease_id)
    assert dues(rig) == 2

    set_caps(rig, cap_by="other")

    assert (records(rig), dues(rig), rig.queue.counters.cap_dues) == ([], 0, 0)
    rig.assert_sound()


def test_many_keys_have_their_tokens_back_at_once_slice_by_slice(rig: Rig) -> None:
    whos = "".join(chr(ord("a") + at % 20) for at in range(80))
    add(rig, whos)
    rig.poll(40)
    rig.poll(40)
    assert rig.stats().parked == 40
    rig.now_ms += TOKEN_MS
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("queueber.engine.caps.key_changes.CAP_MOVED_MAX", 3)
        rig.sweep_all(items_max=7)
    rig.assert_sound()

    assert rig.poll(80).count == 20


def test_a_store_of_before_there_were_rates_is_read(rig: Rig) -> None:
    """A record of 8 bytes: one slot, nobody parked."""
    set_caps(rig, cap_by_rate_items=0, cap_by_concurrency_max=1)
    add(rig, "aa")
    rig.poll(1)
    ((_, value),) = rig.store.scan(Family.CAP_KEYS, b"", EVER, 10)
    assert value == bytes.fromhex("00000001 00000000")

    set_caps(rig, cap_by_rate_items=2, cap_by_rate_ms=1000, cap_by_concurrency_max=0)
    rig.sweep_all()
    assert told(rig.poll(2)) == "a1"
    assert len(rig.store.scan(Family.CAP_KEYS, b"", EVER, 10)[0][1]) == 28
    rig.assert_sound()


@settings(deadline=None, max_examples=25)
@given(
    items=st.integers(1, 5),
    ms=st.sampled_from([10, 100, 333]),
    steps=st.lists(st.tuples(st.integers(0, 200), st.integers(1, 6)), max_size=12),
)
def test_in_any_time_no_more_is_leased_than_a_burst_and_what_comes_back(
    items: int, ms: int, steps: list[tuple[int, int]]
) -> None:
    rig = Rig(replace(TWO_A_SECOND, cap_by_rate_items=items, cap_by_rate_ms=ms))
    add(rig, "ab" * 30)
    leases: list[int] = []
    for passed_ms, count in steps:
        pass_time(rig, passed_ms)
        found = told(rig.poll(count, lease_ms=60_000)).split()
        leases += [rig.now_ms] * sum(each.startswith("a") for each in found)
    rig.close()

    for first, from_ms in enumerate(leases):
        for last, to_ms in enumerate(leases[first:], first):
            assert last - first + 1 <= items + Fraction(items * (to_ms - from_ms), ms)
