"""AddedIds by RFC 9562, read back by two libraries that know nothing of ours."""

import uuid
from itertools import pairwise
from random import Random

import pytest
import uuid6
from hypothesis import given
from hypothesis import strategies as st

from queueber.ids import (
    ID_HEAD_BYTES,
    IdSource,
    ids_up_to,
    is_from_range,
    made_at_ms,
    origin_of,
    range_end,
    range_id,
    shifted,
)
from queueber.limits import PARTITIONS_MAX, ROWS_MAX

NOW_MS = 1_700_000_000_000

counts = st.integers(0, 20)
times_ms = st.integers(1, (1 << 48) - 2)


def source(seed: int = 1) -> IdSource:
    return IdSource(Random(seed))


@given(now_ms=times_ms, seed=st.integers(0, 1000))
def test_mint_at_any_time_makes_uuids_of_version_7(now_ms: int, seed: int) -> None:
    for each in source(seed).mint(3, now_ms):
        read = uuid.UUID(bytes=each)

        assert len(each) == 16
        assert read.version == 7
        assert read.variant == uuid.RFC_4122
        assert uuid6.UUID(bytes=each).time == now_ms
        assert made_at_ms(each) == now_ms


def test_made_at_ms_reads_ids_of_another_library() -> None:
    before_ms = uuid6.uuid7().time
    made = uuid6.uuid7()

    assert made_at_ms(made.bytes) == made.time
    assert made.time >= before_ms


@given(calls=st.lists(st.tuples(counts, times_ms), max_size=30), seed=st.integers(0, 1000))
def test_mint_over_any_counts_and_times_always_rises(
    calls: list[tuple[int, int]], seed: int
) -> None:
    """Whatever the clock does: forwards, backwards, or not at all."""
    ids = source(seed)

    minted = [each for count, now_ms in calls for each in ids.mint(count, now_ms)]

    assert len(minted) == sum(count for count, _ in calls)
    assert all(earlier < later for earlier, later in pairwise(minted))
    assert all(uuid.UUID(bytes=each).version == 7 for each in minted)
    assert all(uuid.UUID(bytes=each).variant == uuid.RFC_4122 for each in minted)


def test_mint_in_bulk_rises_strictly_and_stays_in_its_millisecond() -> None:
    minted = source().mint(100_000, NOW_MS)

    assert len(set(minted)) == 100_000
    assert minted == sorted(minted)
    assert {made_at_ms(each) for each in minted} == {NOW_MS}


def test_mint_twice_in_a_millisecond_goes_on_from_the_last_id() -> None:
    ids = source()

    batches = [ids.mint(50, NOW_MS) for _ in range(40)]

    assert all(earlier[-1] < later[0] for earlier, later in pairwise(batches))
    assert {made_at_ms(each) for batch in batches for each in batch} == {NOW_MS}


def test_mint_in_a_later_millisecond_carries_the_later_time() -> None:
    ids = source()
    ids.mint(5, NOW_MS)

    (minted,) = ids.mint(1, NOW_MS + 1)

    assert made_at_ms(minted) == NOW_MS + 1


def test_mint_after_the_clock_stepped_back_keeps_the_time_it_had() -> None:
    ids = source()
    (before,) = ids.mint(1, NOW_MS)

    (after,) = ids.mint(1, NOW_MS - 60_000)

    assert after > before
    assert made_at_ms(after) == NOW_MS


def test_mint_of_none_makes_none() -> None:
    assert source().mint(0, NOW_MS) == []


def test_mint_for_a_seed_is_deterministic() -> None:
    calls = [(3, NOW_MS), (2, NOW_MS), (4, NOW_MS + 7), (1, NOW_MS)]

    first, second, other = source(5), source(5), source(6)

    assert [first.mint(*call) for call in calls] == [second.mint(*call) for call in calls]
    assert first.mint(1, NOW_MS + 9) != other.mint(1, NOW_MS + 9)


def test_mint_in_separate_milliseconds_starts_at_unrelated_places() -> None:
    """Nobody who knows one id finds the next by adding one."""
    ids = source()

    tails = [int.from_bytes(ids.mint(1, NOW_MS + n)[0][8:]) for n in range(50)]

    assert all(abs(later - earlier) > 1 << 30 for earlier, later in pairwise(tails))


class LowestRandom(Random):
    """Every number that it gives is zero: no luck keeps two ids apart."""

    def getrandbits(self, k: int, /) -> int:
        return 0


def test_mint_and_continue_without_any_luck_never_make_an_id_twice() -> None:
    ids = IdSource(LowestRandom())
    minted: list[bytes] = []

    for count in (1, 1, 3, 0, 2, 1):
        minted += ids.mint(count, NOW_MS)
    again = IdSource(LowestRandom())
    again.continue_after(minted[-1])
    minted += again.mint(2, NOW_MS)

    assert all(earlier < later for earlier, later in pairwise(minted))


@given(last_id_ms=times_ms, now_ms=times_ms, theirs=st.integers(0, 99), ours=st.integers(0, 99))
def test_continue_after_makes_every_later_id_greater(
    last_id_ms: int, now_ms: int, theirs: int, ours: int
) -> None:
    last_id = source(theirs).mint(1, last_id_ms)[0]
    ids = source(ours)

    ids.continue_after(last_id)

    assert min(ids.mint(10, now_ms)) > last_id


def test_continue_after_an_older_id_changes_nothing() -> None:
    old_id = source(9).mint(1, NOW_MS - 1)[0]
    told, untold = source(), source()
    assert told.mint(1, NOW_MS) == untold.mint(1, NOW_MS)

    told.continue_after(old_id)
    told.continue_after(bytes(16))

    assert told.mint(5, NOW_MS) == untold.mint(5, NOW_MS)


@pytest.mark.parametrize("tail", [b"\xbf" + b"\xff" * 7, b"\xbf" + b"\xff" * 5 + b"\x00\x00"])
def test_continue_after_the_last_id_of_a_millisecond_goes_on_in_the_next(tail: bytes) -> None:
    """The counter has no room left: the variant's bits must not be overrun."""
    last_id = source().mint(1, NOW_MS)[0][:8] + tail
    ids = source()
    ids.continue_after(last_id)

    minted = ids.mint(10, NOW_MS)

    assert minted[0] > last_id
    assert {made_at_ms(each) for each in minted} == {NOW_MS + 1}
    assert {uuid.UUID(bytes=each).variant for each in minted} == {uuid.RFC_4122}


# --- consecutive ids ------------------------------------------------------------------------------


@given(
    calls=st.lists(st.tuples(counts, times_ms), min_size=1, max_size=10),
    seed=st.integers(0, 1000),
)
def test_mint_last_gives_the_last_of_the_ids_that_mint_gives(
    calls: list[tuple[int, int]], seed: int
) -> None:
    one, other = source(seed), source(seed)

    minted = [one.mint(*call) for call in calls]
    lasts = [other.mint_last(*call) for call in calls]

    assert [ids[-1] for ids in minted if ids] == [
        last for last, (count, _) in zip(lasts, calls, strict=True) if count
    ]
    assert minted == [ids_up_to(last, count) for last, (count, _) in zip(lasts, calls, strict=True)]


@given(tail=st.integers(1000, (1 << 64) - 1), count=st.integers(0, 1000))
def test_ids_up_to_are_one_apart_and_end_with_the_last(tail: int, count: int) -> None:
    head = bytes.fromhex("018bcfe568007abc")

    ids = ids_up_to(head + tail.to_bytes(8), count)

    assert ids == [head + each.to_bytes(8) for each in range(tail - count + 1, tail + 1)]


@given(now_ms=times_ms, count=st.integers(1, 600), seed=st.integers(0, 1000), data=st.data())
def test_shifted_goes_from_any_id_of_a_mint_to_any_other(
    now_ms: int, count: int, seed: int, data: st.DataObject
) -> None:
    ids = source(seed).mint(count, now_ms)
    here, there = data.draw(st.tuples(*[st.integers(0, count - 1)] * 2))

    assert shifted(ids[here], there - here) == ids[there]


@given(partition=st.integers(0, PARTITIONS_MAX - 1), row=st.integers(600, ROWS_MAX - 1))
def test_rows_of_a_partition_are_consecutive_ids(partition: int, row: int) -> None:
    head = source().mint_range(NOW_MS)
    last = range_id(head, partition, row)

    assert ids_up_to(last, 600) == [
        range_id(head, partition, each) for each in range(row - 599, row + 1)
    ]
    assert shifted(last, -600) == range_id(head, partition, row - 600)


# --- ranges ---------------------------------------------------------------------------------------

partitions = st.integers(0, PARTITIONS_MAX - 1)
rows = st.integers(0, ROWS_MAX - 1)
# An id after a range carries the next millisecond: there must be some left.
times_with_room_ms = st.integers(1, 1 << 47)
some_ids = st.one_of(
    st.tuples(st.just("mint"), counts, times_with_room_ms),
    st.tuples(st.just("range"), st.just(0), times_with_room_ms),
)


@given(now_ms=times_ms, seed=st.integers(0, 1000), partition=partitions, row=rows)
def test_mint_range_at_any_time_holds_uuids_of_version_8_that_tell_their_origin(
    now_ms: int, seed: int, partition: int, row: int
) -> None:
    head = source(seed).mint_range(now_ms)

    made = range_id(head, partition, row)

    read = uuid.UUID(bytes=made)
    assert len(head) == ID_HEAD_BYTES
    assert (read.version, read.variant) == (8, uuid.RFC_4122)
    assert made_at_ms(made) == now_ms
    assert origin_of(made) == (partition, row)
    assert is_from_range(made)
    assert head < made <= range_end(head)


@given(first=st.tuples(partitions, rows), second=st.tuples(partitions, rows))
def test_ids_of_a_range_sort_by_partition_then_row(
    first: tuple[int, int], second: tuple[int, int]
) -> None:
    head = source().mint_range(NOW_MS)

    assert (range_id(head, *first) < range_id(head, *second)) == (first < second)


def test_origin_of_an_id_of_no_range_is_not_known() -> None:
    (minted,) = source().mint(1, NOW_MS)

    assert origin_of(minted) is None
    assert not is_from_range(minted)


@given(calls=st.lists(some_ids, max_size=30), seed=st.integers(0, 1000))
def test_mint_and_mint_range_in_any_order_at_any_time_always_rise(
    calls: list[tuple[str, int, int]], seed: int
) -> None:
    """A range counts from its first id to its last: nothing else comes between."""
    made = make_ids(source(seed), calls)

    assert all(earlier < later for earlier, later in pairwise(made))


def make_ids(ids: IdSource, calls: list[tuple[str, int, int]]) -> list[bytes]:
    made: list[bytes] = []
    for what, count, now_ms in calls:
        if what == "mint":
            made += ids.mint(count, now_ms)
        else:
            head = ids.mint_range(now_ms)
            made += [range_id(head, 0, 0), range_end(head)]
    return made


@given(
    before=st.lists(some_ids, min_size=1, max_size=5),
    after=st.lists(some_ids, max_size=5),
    theirs=st.integers(0, 99),
    ours=st.integers(0, 99),
)
def test_continue_after_any_last_id_makes_all_later_ids_and_ranges_greater(
    before: list[tuple[str, int, int]],
    after: list[tuple[str, int, int]],
    theirs: int,
    ours: int,
) -> None:
    last_id = max(make_ids(source(theirs), before), default=bytes(16))
    ids = source(ours)

    ids.continue_after(last_id)

    assert all(last_id < each for each in make_ids(ids, after))


@pytest.mark.parametrize(("partition", "row"), [(0, 0), (7, 9), (PARTITIONS_MAX - 1, ROWS_MAX - 1)])
def test_continue_after_any_id_of_a_range_goes_on_after_the_whole_range(
    partition: int, row: int
) -> None:
    head = source(3).mint_range(NOW_MS)
    ids = source(4)

    ids.continue_after(range_id(head, partition, row))

    assert ids.mint_range(NOW_MS) > head
    assert ids.mint(1, NOW_MS)[0] > range_end(head)


def test_continue_after_a_range_that_came_before_changes_nothing() -> None:
    told, untold = source(), source()
    heads = [each.mint_range(NOW_MS) for each in (told, untold)]

    told.continue_after(range_id(heads[0], 5, 5))
    told.continue_after(source(2).mint(1, NOW_MS)[0])

    assert told.mint_range(NOW_MS) == untold.mint_range(NOW_MS)


def test_mint_range_within_a_millisecond_takes_the_next_number() -> None:
    ids = source()

    heads = [ids.mint_range(NOW_MS) for _ in range(500)]

    assert heads == sorted(set(heads))
    assert {made_at_ms(head + bytes(7)) for head in heads} == {NOW_MS}


def test_mint_range_when_the_numbers_of_a_millisecond_end_goes_on_in_the_next() -> None:
    last = range_id(bytes.fromhex(f"{NOW_MS:012x}8fffbf"), 0, 0)
    ids = source()
    ids.continue_after(last)

    head = ids.mint_range(NOW_MS)

    assert made_at_ms(head) == NOW_MS + 1
    assert uuid.UUID(bytes=range_id(head, 0, 0)).version == 8


def test_mint_in_the_millisecond_of_a_range_carries_the_next_one() -> None:
    """Ids of a range sort after all others of their millisecond."""
    ids = source()
    ids.mint_range(NOW_MS)

    assert made_at_ms(ids.mint(1, NOW_MS)[0]) == NOW_MS + 1


def test_mint_range_without_any_luck_never_makes_one_twice() -> None:
    ids = IdSource(LowestRandom())
    made = [ids.mint_range(NOW_MS), ids.mint_range(NOW_MS)]
    ids.mint(1, NOW_MS)
    made += [ids.mint_range(NOW_MS), ids.mint_range(NOW_MS - 5)]

    assert made == sorted(set(made))
