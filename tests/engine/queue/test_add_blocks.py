"""Add: items are cut into blocks and runs by their number, bytes and columns."""

from collections.abc import Sequence
from contextlib import closing
from itertools import groupby, pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from queueber.db.families import Family
from queueber.db.records.blocks import Block, pack_attributes
from queueber.db.records.keys import due_part
from queueber.db.records.runs import MarkFields
from queueber.ids import shifted
from queueber.limits import BLOCK_BYTES_MAX, BLOCK_ITEMS_MAX, KIB, MIB
from queueber.model import ItemInfo, ItemState, NewItems
from tests.engine.making import parts_of
from tests.support.operations import peek
from tests.support.rig import Rig


def block_counts(rig: Rig) -> list[int]:
    return [Block(value).span for _, value in rig.dump()["items"]]


def assert_blocks(rig: Rig, ids: Sequence[bytes], contents: Sequence[bytes]) -> None:
    """Blocks have the items one after the other, within the limits, and each is a ready run."""
    assert rig.stored_ids() == rig.ready_ids() == list(ids)
    blocks = [(key[4:], Block(value)) for key, value in rig.dump()["items"]]
    assert [each for _, block in blocks for each in block.contents(0, block.span)] == list(contents)
    for _, block in blocks:
        assert block.span <= BLOCK_ITEMS_MAX
        assert block.span == 1 or block.size(0, block.span) <= BLOCK_BYTES_MAX
    assert [(run.last, run.count, run.size) for run in rig.runs(Family.VISIBILITY_INDEX)] == [
        (last, block.span, block.size(0, block.span)) for last, block in blocks
    ]
    assert all(run.is_whole_block for run in rig.runs(Family.VISIBILITY_INDEX))
    rig.assert_sound()


# --- larger than a block --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("count", "counts"),
    [
        (BLOCK_ITEMS_MAX, [BLOCK_ITEMS_MAX]),
        (BLOCK_ITEMS_MAX + 1, [BLOCK_ITEMS_MAX, 1]),
        (3 * BLOCK_ITEMS_MAX, [BLOCK_ITEMS_MAX] * 3),
    ],
)
def test_add_of_more_items_than_a_block_has_makes_several(
    rig: Rig, count: int, counts: list[int]
) -> None:
    contents = [b"%d" % n for n in range(count)]

    ids = rig.add(*contents)

    assert ids == [shifted(ids[0], n) for n in range(count)]
    assert block_counts(rig) == counts
    assert_blocks(rig, ids, contents)
    assert rig.poll(count).contents == contents


def test_add_of_more_bytes_than_a_block_has_makes_several(rig: Rig) -> None:
    contents = [b"x" * 10 * KIB] * 13

    ids = rig.add(*contents)

    assert block_counts(rig) == [6, 6, 1]
    assert_blocks(rig, ids, contents)


def test_add_of_exactly_the_bytes_of_a_block_makes_one(rig: Rig) -> None:
    half = BLOCK_BYTES_MAX // 2
    rig.add(b"x" * half, b"y" * half)
    rig.add(b"x" * half, b"y" * (half + 1))

    assert block_counts(rig) == [2, 1, 1]


def test_add_of_an_item_larger_than_a_block_gives_it_a_block_of_its_own(rig: Rig) -> None:
    contents = [b"a", b"b" * (BLOCK_BYTES_MAX + 1), b"c", b"d", b"e" * (3 * BLOCK_BYTES_MAX)]

    ids = rig.add(*contents)

    assert block_counts(rig) == [1, 1, 2, 1]
    assert_blocks(rig, ids, contents)
    polled = rig.poll(5, bytes_max=16 * MIB)
    assert (polled.ids, polled.contents) == (ids, contents)
    assert rig.remove(ids, polled.lease_id) == [True] * 5
    assert rig.keys(Family.ITEMS) == []
    rig.assert_sound()


def test_add_counts_keys_and_attributes_into_the_bytes_of_a_block(rig: Rig) -> None:
    count = 100
    items = NewItems([b"x"] * count, attributes=[{"name": "v" * KIB}] * count)

    rig.add_items(items)

    each = 1 + len(pack_attributes({"name": "v" * KIB}))
    fitting = BLOCK_BYTES_MAX // each
    assert block_counts(rig) == [fitting, count - fitting]
    assert rig.stats().contents_bytes == count * each
    rig.assert_sound()


@settings(max_examples=30, deadline=None)
@given(
    sizes=st.lists(
        st.sampled_from([0, 1, 100, 20 * KIB, BLOCK_BYTES_MAX, BLOCK_BYTES_MAX + 1]),
        min_size=1,
        max_size=25,
    )
)
def test_add_of_any_sizes_makes_blocks_as_full_as_they_may_be(sizes: list[int]) -> None:
    with closing(Rig()) as rig:
        contents = [bytes([at]) * size for at, size in enumerate(sizes)]

        ids = rig.add(*contents)

        assert_blocks(rig, ids, contents)
        blocks = [Block(value) for _, value in rig.dump()["items"]]
        for block, following in pairwise(blocks):
            size = block.size(0, block.span)
            assert size + following.size(0, 1) > BLOCK_BYTES_MAX, "the next item did not fit"


# --- columns --------------------------------------------------------------------------------------


def test_add_of_mixed_priorities_makes_a_run_of_each_stretch(rig: Rig) -> None:
    contents = [b"%d" % n * n for n in range(8)]
    items = NewItems(contents, priorities=[5, 5, 9, 9, 9, 5, 0, 5])

    ids = list(rig.add_items(items).ids)

    assert block_counts(rig) == [8]
    assert rig.runs(Family.VISIBILITY_INDEX) == [
        *parts_of(ids, contents, [2, 3, 4], MarkFields(priority=9)),
        *parts_of(ids, contents, [0, 1, 5, 7]),
        *parts_of(ids, contents, [6], MarkFields(priority=0)),
    ]
    assert rig.queue.counters.levels == {
        0: (3, due_part(rig.now_ms, ids[4])),
        4: (4, due_part(rig.now_ms, ids[1])),
        9: (1, due_part(rig.now_ms, ids[6])),
    }
    rig.assert_sound()


def test_add_of_mixed_delays_makes_a_run_of_each_stretch_in_the_order_of_time(rig: Rig) -> None:
    contents = [b"x"] * 7
    ids = rig.add(*contents, delays_ms=[50, 50, 0, 0, 20, 50, 50])

    assert rig.runs(Family.VISIBILITY_INDEX) == parts_of(ids, contents, [2, 3])
    assert rig.runs(Family.DELAYED) == [
        *parts_of(ids, contents, [4]),
        *parts_of(ids, contents, [0, 1, 5, 6]),
    ]
    assert rig.dump()["places"] == [
        (rig.queue.prefix + ids[at], (rig.now_ms + delay_ms).to_bytes(8))
        for at, delay_ms in ((1, 50), (4, 20), (6, 50))
    ]
    assert rig.queue.counters.delayed_due_ms == rig.now_ms + 20
    rig.assert_sound()


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_add_of_any_columns_gives_each_item_its_own(data: st.DataObject) -> None:
    """Over two blocks, so that columns are cut with their items."""
    with closing(Rig()) as rig, pytest.MonkeyPatch.context() as patch:
        patch.setattr("queueber.db.records.blocks.BLOCK_ITEMS_MAX", 9)
        count = data.draw(st.integers(1, 25))

        def column(values: Sequence[object]) -> list[object]:
            return data.draw(st.lists(st.sampled_from(values), min_size=count, max_size=count))

        items = NewItems(
            [b"%d" % n for n in range(count)],
            delays_ms=column([0, 0, 50]),  # type: ignore[arg-type]
            priorities=column([5, 5, 9]),  # type: ignore[arg-type]
            keys=[f"k{n}" if each else "" for n, each in enumerate(column([0, 1]))],
            attributes=column([{}, {"a": "b"}, {"n": "ö", "m": ""}]),  # type: ignore[arg-type]
            batch=data.draw(st.sampled_from(["", "b"])),
        )

        ids = rig.add_items(items).ids

        seen: dict[bytes, tuple[ItemState, ItemInfo]] = {}
        for state in (ItemState.READY, ItemState.DELAYED):
            page, _ = peek(rig.engine, rig.queue, state, b"", 100, MIB)
            seen |= {each.id: (state, each) for each in page}
        for at, item_id in enumerate(ids):
            state, found = seen[item_id]
            delay_ms = items.delays_ms[at]
            assert state is (ItemState.DELAYED if delay_ms else ItemState.READY)
            assert (found.at_ms, found.contents) == (rig.now_ms + delay_ms, items.contents[at])
            assert (found.key, found.attributes) == (items.keys[at], items.attributes[at])
            assert (found.priority, found.batch) == (items.priorities[at], items.batch)
        alike = zip([n // 9 for n in range(count)], items.delays_ms, items.priorities, strict=True)
        runs = len(rig.runs(Family.VISIBILITY_INDEX)) + len(rig.runs(Family.DELAYED))
        assert runs == len(list(groupby(alike)))
        rig.assert_sound()
