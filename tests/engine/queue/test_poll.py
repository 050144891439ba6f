"""Poll: the oldest visible first, under a lease, within the answer's size."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from queueber.db.families import Family
from queueber.db.records.keys import due_part
from queueber.db.records.leases import decode_lease
from queueber.db.records.runs import decode_held
from queueber.limits import ITEM_WIRE_BYTES, MIB, READY_WINDOW_ENTRIES
from queueber.model import NOTHING_POLLED
from tests.engine.making import add_runs, come_back_at_once, run_of
from tests.support.rig import Rig


def test_poll_takes_the_oldest_first_with_their_contents(rig: Rig) -> None:
    ids = rig.add(b"a", b"bb", b"ccc")

    polled = rig.poll(2)

    assert polled.ids == ids[:2]
    assert polled.contents == [b"a", b"bb"]
    assert rig.ready_ids() == ids[2:]
    rig.assert_sound()


def test_poll_of_more_than_there_are_takes_them_all(rig: Rig) -> None:
    ids = rig.add(b"a", b"b")

    polled = rig.poll(100)

    assert polled.ids == ids
    assert rig.poll(100) == NOTHING_POLLED


def test_poll_with_nothing_ready_changes_nothing(rig: Rig) -> None:
    rig.add(b"delayed", delays_ms=[10])
    disk, memory = rig.dump(), rig.memory()

    assert rig.poll(5) == NOTHING_POLLED

    assert rig.dump() == disk
    assert rig.memory() == memory


def test_poll_writes_one_lease_with_one_expiry_entry(rig: Rig) -> None:
    ids = rig.add(b"a", b"bb")

    polled = rig.poll(2, lease_ms=700)

    ((key, entry),) = rig.dump()["leases"]
    expires_at_ms, held = decode_lease(entry)
    assert key == rig.queue.prefix + polled.lease_id
    assert expires_at_ms == rig.now_ms + 700
    assert decode_held(held) == [run_of(ids, 3)]
    assert rig.keys(Family.HOLDERS) == [rig.queue.prefix + ids[1] + polled.lease_id]
    assert rig.keys(Family.LEASE_EXPIRY) == [
        rig.queue.prefix + due_part(rig.now_ms + 700, polled.lease_id)
    ]
    assert rig.engine.agenda.next_ms() == rig.now_ms + 700


def test_poll_orders_items_by_when_they_became_visible(rig: Rig) -> None:
    """Not by when they were added: a delay that ended first comes first."""
    slow, quick = rig.add(b"slow", b"quick", delays_ms=[50, 10])
    rig.now_ms += 30
    (plain,) = rig.add(b"plain")
    rig.now_ms += 30
    rig.sweep_all()

    assert rig.poll(3).ids == [quick, plain, slow]


def test_poll_after_expiry_gives_the_item_behind_those_that_waited(rig: Rig) -> None:
    come_back_at_once(rig)
    (expired,) = rig.add(b"first")
    rig.poll(1, lease_ms=10)
    (waited,) = rig.add(b"second")
    rig.now_ms += 10
    rig.sweep_all()

    assert rig.poll(2).ids == [waited, expired]


def test_poll_never_gives_an_item_twice(rig: Rig) -> None:
    ids = rig.add(*[b"%d" % n for n in range(20)])

    answers = [rig.poll(3) for _ in range(8)]

    assert [each for answer in answers for each in answer.ids] == ids
    assert len({answer.lease_id for answer in answers if answer.ids}) == 7


# --- several polls in one call --------------------------------------------------------------------


def test_poll_of_several_counts_gives_each_a_lease_of_its_own(rig: Rig) -> None:
    ids = rig.add(*[b"%d" % n for n in range(6)])

    first, second, third = rig.poll_many([2, 1, 3])

    assert [first.ids, second.ids, third.ids] == [ids[:2], ids[2:3], ids[3:]]
    assert first.lease_id < second.lease_id < third.lease_id
    assert third.contents == [b"3", b"4", b"5"]
    rig.assert_sound()


def test_poll_of_several_counts_serves_the_first_ones_first(rig: Rig) -> None:
    ids = rig.add(b"a", b"b", b"c")

    answers = rig.poll_many([2, 2, 2])

    assert [list(answer.ids) for answer in answers] == [ids[:2], ids[2:], []]
    assert answers[2] == NOTHING_POLLED
    assert rig.stats().leases == 2
    rig.assert_sound()


def test_poll_of_several_counts_with_nothing_ready_answers_each_with_nothing(rig: Rig) -> None:
    assert rig.poll_many([1, 2, 3]) == [NOTHING_POLLED] * 3


# --- the size of the answer -----------------------------------------------------------------------


def test_poll_stops_before_the_item_that_would_pass_the_limit(rig: Rig) -> None:
    ids = rig.add(b"x" * 100, b"y" * 100, b"z" * 100)
    exactly_two = 2 * (100 + ITEM_WIRE_BYTES)

    assert rig.poll(3, bytes_max=exactly_two).ids == ids[:2]
    assert rig.poll(3, bytes_max=exactly_two).ids == ids[2:]
    rig.assert_sound()


def test_poll_one_byte_below_the_limit_for_two_takes_one(rig: Rig) -> None:
    ids = rig.add(b"x" * 100, b"y" * 100)

    polled = rig.poll(2, bytes_max=2 * (100 + ITEM_WIRE_BYTES) - 1)

    assert polled.ids == ids[:1]
    assert rig.ready_ids() == ids[1:]


def test_poll_of_a_first_item_over_the_limit_gives_it_alone(rig: Rig) -> None:
    ids = rig.add(b"x" * 5000, b"y")

    polled = rig.poll(2, bytes_max=1000)

    assert polled.ids == ids[:1]
    assert polled.contents == [b"x" * 5000]
    assert rig.poll(2, bytes_max=1000).ids == ids[1:]


def test_poll_of_several_counts_keeps_the_limit_for_all_together(rig: Rig) -> None:
    ids = rig.add(*[b"x" * 100 for _ in range(4)])

    answers = rig.poll_many([1, 1, 1, 1], bytes_max=3 * (100 + ITEM_WIRE_BYTES))

    assert [list(answer.ids) for answer in answers] == [ids[:1], ids[1:2], ids[2:3], []]
    assert rig.ready_ids() == ids[3:]
    rig.assert_sound()


@settings(max_examples=25, deadline=None)
@given(
    sizes=st.lists(st.integers(0, 300), min_size=1, max_size=12),
    counts=st.lists(st.integers(1, 4), min_size=1, max_size=4),
    bytes_max=st.integers(1, 1500),
)
def test_poll_of_any_sizes_takes_the_longest_front_that_fits(
    sizes: list[int], counts: list[int], bytes_max: int
) -> None:
    rig = Rig()
    try:
        ids = rig.add(*[b"x" * size for size in sizes])

        answers = rig.poll_many(counts, bytes_max=bytes_max)

        taken = [each for answer in answers for each in answer.ids]
        assert taken == ids[: len(taken)]
        costs = [size + ITEM_WIRE_BYTES for size in sizes]
        assert len(taken) == 1 or sum(costs[: len(taken)]) <= bytes_max
        could_take_more = len(taken) < min(len(ids), sum(counts))
        assert not could_take_more or sum(costs[: len(taken) + 1]) > bytes_max
        rig.assert_sound()
    finally:
        rig.close()


# --- contents -------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [0, 1, 7, 8, 4096, 3 * MIB + 1])
def test_poll_gives_contents_back_exactly(rig: Rig, size: int) -> None:
    contents = rig.random.randbytes(size)
    rig.add(contents)

    assert rig.poll(bytes_max=16 * MIB).contents == [contents]


# --- the window -----------------------------------------------------------------------------------


@pytest.fixture
def nothing_fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs whose blocks are kept in memory are in the window, however many they are."""
    monkeypatch.setattr("queueber.engine.queue.recent_blocks.RECENT_BYTES_MAX", 0)


@pytest.mark.usefixtures("nothing_fresh")
def test_poll_across_several_windows_keeps_the_order_to_the_last_item(rig: Rig) -> None:
    count = 3 * READY_WINDOW_ENTRIES + 17
    ids = add_runs(rig, [b"%d" % n for n in range(count)])
    assert len(rig.queue.ready.windows[4].entries) == READY_WINDOW_ENTRIES
    polled: list[bytes] = []
    contents: list[bytes] = []

    while (answer := rig.poll(100)).ids:
        polled += answer.ids
        contents += answer.contents

    assert polled == ids
    assert contents == [b"%d" % n for n in (*range(0, count, 2), *range(1, count, 2))]
    assert rig.stats().ready == 0
    rig.assert_sound()


@pytest.mark.usefixtures("nothing_fresh")
def test_poll_of_more_than_a_window_at_once_gives_them_all(rig: Rig) -> None:
    ids = add_runs(rig, [b""] * (READY_WINDOW_ENTRIES + 500))

    polled = rig.poll(READY_WINDOW_ENTRIES + 300)

    assert polled.ids == ids[: READY_WINDOW_ENTRIES + 300]
    assert rig.poll(1000).ids == ids[READY_WINDOW_ENTRIES + 300 :]


@pytest.mark.usefixtures("nothing_fresh")
def test_poll_interleaved_with_adds_beyond_the_window_keeps_the_order(rig: Rig) -> None:
    """What is added while the window is full lies behind it, on disk only."""
    ids = add_runs(rig, [b""] * READY_WINDOW_ENTRIES)
    ids += rig.add(*[b""] * 10)
    assert not rig.queue.ready.windows[4].is_complete
    polled = list(rig.poll(1000).ids)
    rig.now_ms += 1
    ids += rig.add(*[b""] * 50)

    while (answer := rig.poll(7)).ids:
        polled += answer.ids

    assert polled == ids


@pytest.mark.usefixtures("nothing_fresh")
def test_poll_of_an_early_item_that_came_late_finds_it_in_a_full_window(rig: Rig) -> None:
    rig.now_ms += 10_000
    ids = add_runs(rig, [b""] * (READY_WINDOW_ENTRIES + 5))
    rig.now_ms -= 10_000

    (early,) = rig.add(b"early")

    assert len(rig.queue.ready.windows[4].entries) == READY_WINDOW_ENTRIES
    rig.assert_sound()
    assert rig.poll(3).ids == [early, *ids[:2]]
