"""Marks, dead letters and failures: bytes that must not change, and the short ways to read them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queueber.db.records.keys import (
    MARK_BYTES,
    PLAIN_TAIL,
    MarkFields,
    decode_attempts,
    decode_dead,
    decode_mark,
    encode_attempts,
    encode_dead,
    encode_mark,
    is_plain,
    mark_attempts,
    mark_batch,
    mark_group_max,
    mark_has_details,
    mark_level,
    mark_size,
    new_mark,
    with_group_max,
)
from queueber.limits import ATTEMPTS_CEILING
from tests.support.entries import plain_mark

sizes = st.integers(0, (1 << 32) - 1)
priorities = st.integers(0, 9)
any_mark = st.builds(
    MarkFields,
    size=sizes,
    batch=sizes,
    attempts=st.integers(0, (1 << 16) - 1),
    group_max=st.integers(0, (1 << 16) - 1),
    priority=priorities,
    flags=st.integers(0, 1),
)

GOLDEN_MARK = bytes.fromhex("01020304 05060708 0a0b 0c0d 09 01")
GOLDEN_PLAIN = bytes.fromhex("0000000d 00000000 0000 0000 05 00")


def test_marks_have_their_golden_bytes() -> None:
    mark = MarkFields(0x01020304, 0x05060708, 0x0A0B, 0x0C0D, 9, 1)

    assert encode_mark(mark) == GOLDEN_MARK
    assert decode_mark(GOLDEN_MARK) == mark
    assert plain_mark(13) == GOLDEN_PLAIN
    assert decode_mark(GOLDEN_PLAIN) == MarkFields(13, 0, 0, 0, 5, 0)


@given(mark=any_mark)
def test_mark_round_trips_and_its_parts_are_found_where_they_are(mark: MarkFields) -> None:
    encoded = encode_mark(mark)

    assert len(encoded) == MARK_BYTES
    assert decode_mark(encoded) == mark
    assert mark_size(encoded) == mark.size
    assert mark_batch(encoded) == mark.batch
    assert mark_attempts(encoded) == mark.attempts
    assert mark_group_max(encoded) == mark.group_max
    assert mark_has_details(encoded) == mark.has_details
    assert mark_level(encoded) == 9 - mark.priority + (10 if mark.group_max else 0)
    assert mark.has_details == bool(mark.flags)
    assert is_plain(encoded) == (mark == MarkFields(mark.size))


@given(size=sizes)
def test_plain_mark_is_that_of_an_item_with_nothing_to_say(size: int) -> None:
    assert plain_mark(size) == encode_mark(MarkFields(size)) == size.to_bytes(4) + PLAIN_TAIL
    assert new_mark(size, 0, 5, has_details=False) == plain_mark(size)
    assert is_plain(plain_mark(size))


@given(size=sizes, batch=sizes, priority=priorities, has_details=st.booleans())
def test_new_mark_has_neither_attempts_nor_a_group(
    size: int, batch: int, priority: int, has_details: bool
) -> None:
    encoded = new_mark(size, batch, priority, has_details=has_details)

    assert decode_mark(encoded) == MarkFields(size, batch, 0, 0, priority, int(has_details))


@given(mark=any_mark, group_max=st.integers(0, 1 << 20))
def test_with_group_max_changes_only_that_up_to_what_a_mark_can_say(
    mark: MarkFields, group_max: int
) -> None:
    expected = mark._replace(group_max=min(group_max, 65_535))

    assert decode_mark(with_group_max(encode_mark(mark), group_max)) == expected


@given(marks=st.lists(any_mark, max_size=10))
def test_levels_sort_the_highest_priority_first_and_suspects_last(marks: list[MarkFields]) -> None:
    by_level = [decode_mark(mark) for mark in sorted(map(encode_mark, marks), key=mark_level)]

    assert by_level == sorted(by_level, key=lambda mark: (mark.group_max > 0, -mark.priority))


@pytest.mark.parametrize("size", [0, 13, 15])
def test_mark_of_another_width_is_refused(size: int) -> None:
    with pytest.raises(Exception, match="14"):
        decode_mark(bytes(size))


numbers = st.integers(0, (1 << 64) - 1)
texts = st.text(max_size=100)
NOW_MS = 1_700_000_000_000
GOLDEN_DEAD = bytes.fromhex("0000018bcfe56800 02 0000000d 00000000 0000 0000 05 00")
GOLDEN_ATTEMPTS = bytes.fromhex("0002 0000018bcfe56800 0000018bcfe56801 c3b6 21")


def test_dead_has_its_golden_bytes() -> None:
    assert encode_dead(NOW_MS, 2, plain_mark(13)) == GOLDEN_DEAD
    assert decode_dead(GOLDEN_DEAD) == (NOW_MS, 2, plain_mark(13))


def test_attempts_have_their_golden_bytes() -> None:
    assert encode_attempts([NOW_MS, NOW_MS + 1], "ö!") == GOLDEN_ATTEMPTS
    assert decode_attempts(GOLDEN_ATTEMPTS) == ([NOW_MS, NOW_MS + 1], "ö!")


@given(died_at_ms=numbers, reason=st.integers(0, 255), mark=st.binary(min_size=14, max_size=14))
def test_dead_round_trips(died_at_ms: int, reason: int, mark: bytes) -> None:
    assert decode_dead(encode_dead(died_at_ms, reason, mark)) == (died_at_ms, reason, mark)


@given(times_ms=st.lists(numbers, max_size=20), error=texts)
def test_attempts_round_trip(times_ms: list[int], error: str) -> None:
    assert decode_attempts(encode_attempts(times_ms, error)) == (times_ms, error)


def test_as_many_attempts_as_a_queue_may_allow_round_trip() -> None:
    times_ms = [NOW_MS + n for n in range(ATTEMPTS_CEILING)]

    assert decode_attempts(encode_attempts(times_ms, "")) == (times_ms, "")
