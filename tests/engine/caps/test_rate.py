"""A rate as one number: never passed, and never forgotten."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queueber.engine.caps.rate import Rate

NOW_MS = 1_700_000_000_000


def test_a_new_rate_allows_a_full_burst() -> None:
    rate = Rate(100, 60_000)

    assert rate.room(0, NOW_MS) == 100
    assert rate.due_ms(0, NOW_MS) <= NOW_MS


def test_tokens_come_back_evenly() -> None:
    rate = Rate(100, 60_000)
    spent = rate.take(0, 100, NOW_MS)

    assert rate.room(spent, NOW_MS) == 0
    assert rate.due_ms(spent, NOW_MS) == NOW_MS + 600
    assert [rate.room(spent, NOW_MS + ms) for ms in (599, 600, 6000, 60_000, 90_000)] == [
        0, 1, 10, 100, 100,
    ]  # fmt: skip


def test_a_clock_that_steps_back_costs_one_burst_at_most() -> None:
    rate = Rate(10, 1000)
    spent = rate.take(0, 3, NOW_MS)

    assert rate.room(spent, NOW_MS - 86_400_000) == 0
    assert rate.due_ms(spent, NOW_MS - 86_400_000) == NOW_MS - 86_400_000 + 100


def test_a_rate_of_one_in_an_hour_allows_it_each_hour() -> None:
    rate, hour_ms = Rate(1, 3_600_000), 3_600_000
    spent = rate.take(0, 1, NOW_MS)

    assert rate.due_ms(spent, NOW_MS) == NOW_MS + hour_ms
    assert [rate.room(spent, NOW_MS + ms) for ms in (0, hour_ms - 1, hour_ms)] == [0, 0, 1]


def test_several_tokens_are_back_later_than_one() -> None:
    rate = Rate(100, 60_000)
    spent = rate.take(0, 100, NOW_MS)

    assert [rate.due_ms(spent, NOW_MS, n) - NOW_MS for n in (1, 2, 100)] == [600, 1200, 60_000]


def test_a_number_that_is_corrected_is_due_after_one_token() -> None:
    rate = Rate(10, 1000)
    spent = rate.take(0, 10, NOW_MS)
    earlier_ms = NOW_MS - 86_400_000
    corrected = rate.within(spent, earlier_ms)

    assert rate.room(spent, earlier_ms + 100) == 0
    assert rate.room(corrected, earlier_ms + 100) == 1
    assert rate.within(corrected, earlier_ms) == corrected
    assert rate.within(spent, NOW_MS) == spent


@given(
    items=st.integers(1, 1_000_000),
    ms=st.integers(1, 86_400_000),
    steps=st.lists(st.tuples(st.integers(0, 100_000), st.integers(1, 50)), max_size=20),
)
def test_rate_is_never_passed_and_due_when_it_says(
    items: int, ms: int, steps: list[tuple[int, int]]
) -> None:
    rate, now_ms, full_at_us, taken = Rate(items, ms), NOW_MS, 0, 0
    for passed_ms, wanted in steps:
        now_ms += passed_ms
        room = rate.room(full_at_us, now_ms)
        assert 0 <= room <= items
        due_ms = rate.due_ms(full_at_us, now_ms)
        if room:
            assert due_ms <= now_ms
        else:
            assert due_ms > now_ms
            assert rate.room(full_at_us, due_ms) >= 1
            assert rate.room(full_at_us, due_ms - 1) == 0
        count = min(room, wanted)
        if count:
            full_at_us = rate.take(full_at_us, count, now_ms)
            taken += count
        assert taken <= items + Fraction(items * (now_ms - NOW_MS), ms)


@pytest.mark.parametrize("count", [1, 7, 10])
def test_taking_all_that_is_left_leaves_nothing(count: int) -> None:
    rate = Rate(10, 3)
    spent = rate.take(0, count, NOW_MS)

    assert rate.room(spent, NOW_MS) == 10 - count
