"""Ids by RFC 9562, read back by two libraries that know nothing of ours."""

import uuid
from itertools import pairwise
from random import Random

import pytest
import uuid6
from hypothesis import given
from hypothesis import strategies as st

from queueber.ids import IdSource, made_at_ms

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
