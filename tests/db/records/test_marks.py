"""Marks: round trips, and the short ways to read them."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queueber.db.records.runs import (
    MARK_ATTEMPTS_MAX,
    MARK_BYTES,
    UNCHARGED_MAX,
    MarkFields,
    decode_mark,
    encode_mark,
    mark_attempts,
    mark_batch,
    mark_group_max,
    mark_has_details,
    mark_has_nothing_to_tell,
    mark_level,
    mark_uncharged,
    new_mark,
    uncharged_again,
)
from tests.support.entries import PLAIN_MARK

batches = st.integers(0, (1 << 32) - 1)
priorities = st.integers(0, 9)
any_mark = st.builds(
    MarkFields,
    batch=batches,
    attempts=st.integers(0, MARK_ATTEMPTS_MAX),
    group_max=st.integers(0, 255),
    priority=priorities,
    flags=st.integers(0, 31) | st.integers(64, 95),
    uncharged=st.integers(0, UNCHARGED_MAX),
)


@given(mark=any_mark)
def test_mark_round_trips_and_its_parts_are_found_where_they_are(mark: MarkFields) -> None:
    encoded = encode_mark(mark)

    assert len(encoded) == MARK_BYTES
    assert decode_mark(encoded) == mark
    assert mark_batch(encoded) == mark.batch
    assert mark_attempts(encoded) == mark.attempts
    assert mark_group_max(encoded) == mark.group_max
    assert mark_has_details(encoded) == mark.has_details
    parked = 20 if mark.flags & 4 else 0
    assert mark_level(encoded) == 9 - mark.priority + (10 if mark.group_max else 0) + parked
    assert mark.has_details == bool(mark.flags & 1)
    assert mark_uncharged(encoded) == mark.uncharged
    is_plain = not (mark.batch or mark.attempts or mark.uncharged or mark.flags & 9)
    assert mark_has_nothing_to_tell(encoded) == is_plain


@given(batch=batches, priority=priorities, has_details=st.booleans())
def test_new_mark_has_neither_attempts_nor_a_group(
    batch: int, priority: int, has_details: bool
) -> None:
    encoded = new_mark(batch, priority, has_details=has_details)

    assert decode_mark(encoded) == MarkFields(batch, 0, 0, priority, int(has_details))
    assert new_mark(0, 5, has_details=False) == PLAIN_MARK


@given(mark=any_mark, group_max=st.none() | st.integers(0, 1 << 20))
def test_another_uncharged_lease_changes_only_that_and_the_group_up_to_what_a_mark_can_say(
    mark: MarkFields, group_max: int | None
) -> None:
    expected = mark._replace(
        uncharged=min(mark.uncharged + 1, 255),
        group_max=mark.group_max if group_max is None else min(group_max, 255),
    )

    assert decode_mark(uncharged_again(encode_mark(mark), group_max)) == expected


@given(group_max=st.integers(0, (1 << 16) - 1))
def test_mark_from_before_leases_were_counted_keeps_its_group(group_max: int) -> None:
    old = struct.pack(">IHHBB", 7, 2, group_max, 3, 1)

    assert decode_mark(old) == MarkFields(7, 2, group_max, 3, 1)
    assert (mark_group_max(old), mark_uncharged(old)) == (group_max, 0)
    assert encode_mark(decode_mark(old)) == old


@given(marks=st.lists(any_mark, max_size=10))
def test_levels_sort_the_highest_priority_first_and_suspects_last(marks: list[MarkFields]) -> None:
    by_level = [decode_mark(mark) for mark in sorted(map(encode_mark, marks), key=mark_level)]

    assert by_level == sorted(by_level, key=_order)


def _order(mark: MarkFields) -> tuple[bool, bool, int]:
    return bool(mark.flags & 4), mark.group_max > 0, -mark.priority


@pytest.mark.parametrize("size", [0, 9, 11])
def test_mark_of_another_width_is_refused(size: int) -> None:
    with pytest.raises(Exception, match="10"):
        decode_mark(bytes(size))
