"""Poll: runs are cut where the answer ends, and what is left stays where it was."""

from contextlib import closing

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from queueber.db.families import Family
from queueber.db.records.keys import due_part, level_part
from queueber.db.records.runs import MarkFields, encode_run
from queueber.limits import BLOCK_ITEMS_MAX, ITEM_WIRE_BYTES, MIB, OLDEST_FIRST_EVERY
from queueber.model import NewItems
from tests.engine.making import make_quarantined, parts_of, run_of
from tests.support.rig import Rig

HIGH = MarkFields(priority=9)
X = [b"x"] * 10


# --- at a number of items -------------------------------------------------------------------------


def test_poll_of_some_of_a_run_leaves_its_end_under_the_same_key(rig: Rig) -> None:
    contents = [b"%d" % n * n for n in range(10)]
    ids = rig.add(*contents)
    key = rig.queue.prefix + level_part(4) + due_part(rig.now_ms, ids[9])

    polled = rig.poll(4)

    assert (polled.ids, polled.contents) == (ids[:4], contents[:4])
    assert rig.runs(Family.LEASES) == parts_of(ids, contents, range(4))
    (rest,) = parts_of(ids, contents, range(4, 10))
    assert rig.dump()["visibility_index"] == [(key, encode_run(rest))]
    assert rig.queue.counters.levels == {4: (6, key[5:])}
    assert list(rig.queue.ready.windows[4].entries) == [(key[5:], rest)]
    rig.assert_sound()


def test_poll_of_some_of_a_run_keeps_the_place_of_its_end(rig: Rig) -> None:
    ids = rig.add(*X, delays_ms=[50] * 10)
    rig.now_ms += 60
    rig.sweep_all()
    place = [(rig.queue.prefix + ids[9], (rig.now_ms - 10).to_bytes(8))]

    rig.poll(4)
    assert rig.dump()["places"] == place
    rig.assert_sound()

    rig.poll(6)
    assert rig.dump()["places"] == []
    rig.assert_sound()


def test_polls_of_one_call_cut_a_run_once_for_each(rig: Rig) -> None:
    ids = rig.add(*X)

    answers = rig.poll_many([3, 1, 4])

    assert [answer.ids for answer in answers] == [ids[:3], ids[3:4], ids[4:8]]
    assert rig.runs(Family.LEASES) == [
        *parts_of(ids, X, range(3)),
        *parts_of(ids, X, [3]),
        *parts_of(ids, X, range(4, 8)),
    ]
    assert rig.runs(Family.VISIBILITY_INDEX) == parts_of(ids, X, [8, 9])
    rig.assert_sound()


def test_poll_over_several_blocks_and_levels_cuts_the_last_run_only(rig: Rig) -> None:
    items = NewItems(X, priorities=[5, 5, 5, 9, 9, 5, 5, 5, 9, 5])
    mixed = list(rig.add_items(items).ids)
    plain = rig.add(*X)

    polled = rig.poll(13)

    assert polled.ids == [*mixed[3:5], mixed[8], *mixed[:3], *mixed[5:8], mixed[9], *plain[:3]]
    assert rig.runs(Family.LEASES) == [
        *parts_of(mixed, X, [3, 4, 8], HIGH),
        *parts_of(mixed, X, [0, 1, 2, 5, 6, 7, 9]),
        *parts_of(plain, X, range(3)),
    ]
    assert rig.runs(Family.VISIBILITY_INDEX) == parts_of(plain, X, range(3, 10))
    assert [key[4:20] for key in rig.keys(Family.HOLDERS)] == [mixed[9], plain[9]]
    rig.assert_sound()


def test_poll_across_full_blocks_takes_whole_ones_and_a_part(rig: Rig) -> None:
    count = 3 * BLOCK_ITEMS_MAX
    ids = rig.add(*[b"%d" % n for n in range(count)])

    polled = rig.poll(2 * BLOCK_ITEMS_MAX + 7)

    assert polled.ids == ids[: 2 * BLOCK_ITEMS_MAX + 7]
    assert polled.contents == [b"%d" % n for n in range(2 * BLOCK_ITEMS_MAX + 7)]
    assert [run.count for run in rig.runs(Family.LEASES)] == [BLOCK_ITEMS_MAX, BLOCK_ITEMS_MAX, 7]
    (rest,) = rig.runs(Family.VISIBILITY_INDEX)
    assert (rest.ids, rest.at) == (ids[2 * BLOCK_ITEMS_MAX + 7 :], 7)
    rig.assert_sound()


# --- at a number of bytes -------------------------------------------------------------------------


@pytest.mark.parametrize("fits", [1, 2, 7, 8, 9, 10, 19])
def test_poll_cuts_a_run_where_the_bytes_end(rig: Rig, fits: int) -> None:
    contents = [b"x" * 100] * 10
    one = rig.add(*contents)
    two = rig.add(*contents)
    room = fits * (100 + ITEM_WIRE_BYTES)

    polled = rig.poll(20, bytes_max=room + 99 + ITEM_WIRE_BYTES)

    assert polled.ids == [*one, *two][:fits]
    taken = parts_of(one, contents, range(min(fits, 10)))
    left = parts_of(one, contents, range(min(fits, 10), 10))
    if fits > 10:
        taken += parts_of(two, contents, range(fits - 10))
    left += parts_of(two, contents, range(max(fits - 10, 0), 10))
    assert rig.runs(Family.LEASES) == taken
    assert rig.runs(Family.VISIBILITY_INDEX) == left
    rig.assert_sound()


def test_poll_gives_a_large_item_inside_a_run_alone(rig: Rig) -> None:
    contents = [b"a", b"b" * 5000, b"c"]
    ids = rig.add(*contents)

    answers = [rig.poll(3, bytes_max=1000) for _ in range(3)]

    assert [answer.ids for answer in answers] == [[item_id] for item_id in ids]
    assert [answer.contents for answer in answers] == [[each] for each in contents]
    rig.assert_sound()


def test_polls_of_one_call_share_the_bytes_inside_a_run(rig: Rig) -> None:
    contents = [b"x" * 100] * 10
    ids = rig.add(*contents)

    answers = rig.poll_many([3, 3, 3], bytes_max=5 * (100 + ITEM_WIRE_BYTES))

    assert [answer.ids for answer in answers] == [ids[:3], ids[3:5], []]
    assert rig.runs(Family.VISIBILITY_INDEX) == parts_of(ids, contents, range(5, 10))
    rig.assert_sound()


def test_keys_and_attributes_count_into_the_bytes(rig: Rig) -> None:
    items = NewItems([b"x"] * 4, keys=[f"k{n}" * 50 for n in range(4)])
    ids = list(rig.add_items(items).ids)

    polled = rig.poll(4, bytes_max=2 * (101 + ITEM_WIRE_BYTES))

    assert polled.ids == ids[:2]
    rest = run_of(ids[2:], 2 * 101, MarkFields(flags=1), at=2)
    assert rig.runs(Family.VISIBILITY_INDEX) == [rest]
    rig.assert_sound()


# --- at a quarantine limit ------------------------------------------------------------------------


def test_poll_cuts_a_quarantined_run_at_what_its_items_allow(rig: Rig) -> None:
    ids = make_quarantined(rig, 10)
    mark = MarkFields(group_max=5, uncharged=1)
    assert rig.runs(Family.VISIBILITY_INDEX) == parts_of(ids, X, range(10), mark)

    first = rig.poll(100)

    assert first.ids == ids[:5]
    assert rig.runs(Family.VISIBILITY_INDEX) == parts_of(ids, X, range(5, 10), mark)
    assert rig.queue.counters.quarantined == 10
    rig.assert_sound()
    assert [answer.ids for answer in rig.poll_many([2, 100])] == [ids[5:7], ids[7:]]
    rig.assert_sound()


def test_poll_fills_up_with_a_part_of_a_quarantined_run_if_they_are_few_enough(rig: Rig) -> None:
    quarantined = make_quarantined(rig, 10)
    rig.now_ms -= 1
    plain = rig.add(b"a", b"b", b"c")

    polled = rig.poll(100)

    assert polled.ids == [*plain, *quarantined[:2]]
    limited = MarkFields(group_max=5, uncharged=1)
    assert rig.runs(Family.LEASES) == [run_of(plain, 3), *parts_of(quarantined, X, [0, 1], limited)]
    rest = parts_of(quarantined, X, range(2, 10), limited)
    assert rig.runs(Family.VISIBILITY_INDEX) == rest
    rig.assert_sound()


# --- any of it ------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_polls_of_any_counts_and_bytes_give_every_item_once_in_order(data: st.DataObject) -> None:
    """Whatever is cut where: by priority, then by age, with the right contents."""
    with closing(Rig()) as rig:
        waiting: list[tuple[int, int, bytes, bytes]] = []
        for _ in range(data.draw(st.integers(1, 5))):
            count = data.draw(st.integers(1, 15))
            priorities = data.draw(
                st.lists(st.sampled_from([3, 5, 5, 5]), min_size=count, max_size=count)
            )
            sizes = data.draw(st.lists(st.integers(0, 60), min_size=count, max_size=count))
            contents = [bytes([at]) * size for at, size in enumerate(sizes)]
            ids = rig.add_items(NewItems(contents, priorities=priorities)).ids
            waiting += [
                (-priority, rig.now_ms, item_id, each)
                for priority, item_id, each in zip(priorities, ids, contents, strict=True)
            ]
            rig.now_ms += data.draw(st.integers(0, 1))
        waiting.sort()
        while waiting:
            # Without the turns of the oldest.
            rig.queue.counters.leases_total -= rig.queue.counters.leases_total % OLDEST_FIRST_EVERY
            bytes_max = data.draw(st.sampled_from([MIB, 100, 500]))
            counts = data.draw(st.lists(st.integers(1, 7), min_size=1, max_size=3))
            if data.draw(st.booleans()):
                rig.queue.blocks.forget_recent()

            answers = rig.poll_many(counts, bytes_max=bytes_max)

            taken = [pair for each in answers for pair in zip(each.ids, each.contents, strict=True)]
            assert taken == [(item_id, each) for _, _, item_id, each in waiting[: len(taken)]]
            cost = sum(len(each) + ITEM_WIRE_BYTES for _, each in taken)
            assert len(taken) == 1 or cost <= bytes_max
            waiting = waiting[len(taken) :]
            if waiting and len(taken) < sum(counts):
                assert cost + len(waiting[0][3]) + ITEM_WIRE_BYTES > bytes_max
            assert rig.ready_ids() == [item_id for _, _, item_id, _ in waiting]
            rig.assert_sound()
