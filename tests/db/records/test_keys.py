"""Keys round-trip, and sort as their parts do."""

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from queueber.db.records.keys import (
    DUE_BYTES,
    NEVER_MS,
    PREFIX_BYTES,
    TIME_BYTES,
    due_part,
    due_upper_bound,
    is_where_its_id_says,
    level_part,
    prefix_end,
    queue_prefix,
    split_due_part,
    split_queue_prefix,
    text_digest,
    time_part,
)
from queueber.ids import IdSource, made_at_ms
from tests.support.entries import LOWEST_DUE

queue_ids = st.integers(0, (1 << 32) - 2)
times_ms = st.integers(0, NEVER_MS - 1)
ids = st.binary(min_size=16, max_size=16)
parts = st.tuples(queue_ids, times_ms, ids)


def key(queue_id: int, at_ms: int, any_id: bytes) -> bytes:
    return queue_prefix(queue_id) + due_part(at_ms, any_id)


@given(queue_id=queue_ids)
def test_queue_prefix_round_trips(queue_id: int) -> None:
    assert len(queue_prefix(queue_id)) == PREFIX_BYTES
    assert split_queue_prefix(queue_prefix(queue_id)) == queue_id


@given(at_ms=st.integers(0, NEVER_MS), any_id=ids)
def test_due_part_round_trips(at_ms: int, any_id: bytes) -> None:
    due = due_part(at_ms, any_id)

    assert len(due) == DUE_BYTES
    assert split_due_part(due) == (at_ms, any_id)
    assert due.startswith(time_part(at_ms))
    assert len(time_part(at_ms)) == TIME_BYTES


@given(some=st.lists(parts, max_size=30))
def test_keys_sort_as_their_parts_do(some: list[tuple[int, int, bytes]]) -> None:
    assert [key(*each) for each in sorted(some)] == sorted(key(*each) for each in some)


# Times and queues next to each other, where a carry from byte to byte would show.
@given(
    first=st.tuples(st.integers(250, 260), st.integers(65_530, 65_540), ids),
    second=st.tuples(st.integers(250, 260), st.integers(65_530, 65_540), ids),
)
def test_neighbouring_keys_sort_as_their_parts_do(
    first: tuple[int, int, bytes], second: tuple[int, int, bytes]
) -> None:
    assert (key(*first) < key(*second)) == (first < second)


@given(owner=queue_ids, of_key=parts)
def test_prefix_end_bounds_the_keys_of_its_queue_and_no_others(
    owner: int, of_key: tuple[int, int, bytes]
) -> None:
    prefix = queue_prefix(owner)

    within = prefix <= key(*of_key) < prefix_end(prefix)

    assert within == (of_key[0] == owner)


@given(queue_id=queue_ids, tail=st.binary(max_size=64))
def test_prefix_end_is_after_every_key_of_the_queue(queue_id: int, tail: bytes) -> None:
    prefix = queue_prefix(queue_id)

    assert prefix <= prefix + tail < prefix_end(prefix)


@given(queue_id=queue_ids, at_ms=times_ms, any_id=ids, now_ms=times_ms)
def test_due_upper_bound_is_after_what_is_due_and_before_the_rest(
    queue_id: int, at_ms: int, any_id: bytes, now_ms: int
) -> None:
    bound = due_upper_bound(queue_prefix(queue_id), now_ms)

    assert (key(queue_id, at_ms, any_id) < bound) == (at_ms <= now_ms)


@given(queue_id=queue_ids, now_ms=times_ms, any_id=ids)
def test_due_upper_bound_keeps_the_very_millisecond_and_not_the_next(
    queue_id: int, now_ms: int, any_id: bytes
) -> None:
    bound = due_upper_bound(queue_prefix(queue_id), now_ms)

    assert key(queue_id, now_ms, any_id) < bound <= key(queue_id, now_ms + 1, any_id)


@given(at_ms=times_ms, any_id=ids)
def test_the_lowest_due_and_never_are_outside_every_time(at_ms: int, any_id: bytes) -> None:
    assert due_part(at_ms, any_id) >= LOWEST_DUE
    assert at_ms < NEVER_MS
    assert due_part(at_ms, any_id) < time_part(NEVER_MS)


@given(entries=st.lists(st.tuples(st.integers(0, 9), times_ms, ids), max_size=20))
def test_ready_keys_sort_by_level_then_time_then_id(entries: list[tuple[int, int, bytes]]) -> None:
    keys = [level_part(level) + due_part(at_ms, any_id) for level, at_ms, any_id in entries]

    assert sorted(keys) == [
        level_part(level) + due_part(at_ms, any_id) for level, at_ms, any_id in sorted(entries)
    ]
    assert all(len(level_part(level)) == 1 for level, _, _ in entries)


@given(made_at=st.integers(0, (1 << 48) - 1), later_ms=st.integers(0, 3), seed=st.integers(0, 99))
def test_item_is_where_its_id_says_exactly_if_its_time_is_the_one_in_it(
    made_at: int, later_ms: int, seed: int
) -> None:
    (item_id,) = IdSource(Random(seed)).mint(1, made_at)

    due = due_part(made_at + later_ms, item_id)

    assert made_at_ms(item_id) == made_at
    assert is_where_its_id_says(due) == (later_ms == 0)


def test_text_digest_has_its_golden_bytes() -> None:
    """It is part of keys on disk: blake2b of the UTF-8, 16 bytes long."""
    assert text_digest("größe").hex() == "6ca8d2c8fa90974c3039906bbd79b458"
    assert len({text_digest(text) for text in ("", "a", "A", "a ", "ä")}) == 5
