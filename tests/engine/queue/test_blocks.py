"""Blocks: the store holds little more than what is left of them, and that can always be read."""

from collections.abc import Sequence
from contextlib import closing
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from queueber.db.families import Family
from queueber.db.records.blocks import (
    Block,
    Leftover,
    bits_of,
    decode_leftover,
    pack_attributes,
    positions_of,
    rewritten_bytes,
)
from queueber.engine.kernel.transaction import Transaction
from queueber.engine.queue.blocks import BlockReader
from queueber.errors import InvariantViolation
from queueber.limits import BLOCK_ITEMS_MAX, BLOCK_WASTE_FACTOR
from queueber.model import NewItems
from tests.engine.making import run_of
from tests.support.operations import cancel
from tests.support.rig import Rig

# --- what is left ---------------------------------------------------------------------------------


class Expected:
    """A block, and which of its items are left."""

    def __init__(self, ids: Sequence[bytes], items: NewItems) -> None:
        self.ids = ids
        self.contents = items.contents
        self.keys = [key.encode() for key in items.keys or [""] * len(ids)]
        self.attributes = [pack_attributes(each) for each in items.attributes or [{}] * len(ids)]
        self.left = set(range(len(ids)))

    def size(self) -> int:
        columns = (self.contents, self.keys, self.attributes)
        return sum(len(column[at]) for column in columns for at in self.left)

    def check(self, rig: Rig) -> None:
        """Block and leftover are as they must be, and every item that is left can be read."""
        blocks, leftovers = rig.dump()["items"], rig.dump()["leftovers"]
        if not self.left:
            assert blocks == leftovers == []
            return
        ((key, value),) = blocks
        assert key == rig.queue.prefix + self.ids[-1]
        if len(self.left) == len(self.ids):
            assert leftovers == []
        else:
            bits = sum(1 << at for at in self.left)
            ((of, leftover),) = leftovers
            assert of == key
            assert decode_leftover(leftover) == Leftover(len(value), self.size(), bits)
        most = BLOCK_WASTE_FACTOR * rewritten_bytes(self.size(), len(self.left))
        assert len(value) <= most
        for reader in (rig.queue.blocks.reader(), BlockReader(rig.store, rig.queue.prefix)):
            for at in self.left:
                block = reader[run_of([self.ids[at]], 0, at=at, span=len(self.ids))]
                assert block.contents(at, 1) == [self.contents[at]]
                assert block.details(at, 1) == ([self.keys[at]], [self.attributes[at]])
                size = len(self.contents[at]) + len(self.keys[at]) + len(self.attributes[at])
                assert block.size(at, at + 1) == size


@st.composite
def new_items(draw: st.DrawFn) -> NewItems:
    count = draw(st.integers(2, 30))
    sizes = draw(st.lists(st.sampled_from([0, 1, 10, 300]), min_size=count, max_size=count))
    contents = [bytes([at]) * size for at, size in enumerate(sizes)]
    if draw(st.booleans()):
        return NewItems(contents)
    keys = [draw(st.sampled_from(["", f"key {at}"])) for at in range(count)]
    attributes = [draw(st.sampled_from([{}, {"name": "wert" * at}])) for at in range(count)]
    return NewItems(contents, keys=keys, attributes=attributes)


@settings(max_examples=60, deadline=None)
@given(items=new_items(), data=st.data())
def test_items_that_end_in_any_order_leave_exactly_the_others(
    items: NewItems, data: st.DataObject
) -> None:
    """One at a time or several; finished, or cancelled in any state; with the cache or without."""
    with closing(Rig()) as rig:
        expected = Expected(rig.add_items(items).ids, items)
        order = data.draw(st.permutations(range(len(expected.ids))))
        polled = rig.poll_many(data.draw(st.lists(st.integers(1, 9), max_size=4)) or [1])
        lease_of: dict[bytes, bytes] = {item: each.lease_id for each in polled for item in each.ids}
        expected.check(rig)
        while order:
            count = data.draw(st.integers(1, 4))
            ending, order = order[:count], order[count:]
            ids = [expected.ids[at] for at in ending]
            held = [item for item in ids if item in lease_of]
            if len(held) == len(ids) and len({lease_of[item] for item in held}) == 1:
                assert rig.remove(ids, lease_of[held[0]]) == [True] * len(ids)
            else:
                assert cancel(rig.engine, rig.queue, ids, rig.now_ms) == [True] * len(ids)
            expected.left -= set(ending)
            if data.draw(st.booleans()):
                rig.queue.blocks.forget_recent()
            expected.check(rig)
            rig.assert_sound()


def test_full_block_that_ends_item_by_item_is_rewritten_a_few_times(rig: Rig) -> None:
    items = NewItems([b"%04d" % n * 30 for n in range(BLOCK_ITEMS_MAX)])
    expected = Expected(rig.add_items(items).ids, items)
    polled = rig.poll(BLOCK_ITEMS_MAX)
    order = list(range(BLOCK_ITEMS_MAX))
    Random(7).shuffle(order)
    sizes = [len(rig.dump()["items"][0][1])]

    for ended, at in enumerate(order, 1):
        assert rig.remove([polled.ids[at]], polled.lease_id) == [True]
        expected.left.discard(at)
        if ended % 50 == 0 or len(expected.left) < 20:
            expected.check(rig)
        if expected.left:
            ((_, value),) = rig.dump()["items"]
            if len(value) != sizes[-1]:
                assert list(Block(value).positions) == sorted(expected.left)
                sizes.append(len(value))

    assert rig.keys(Family.ITEMS) == rig.keys(Family.LEFTOVERS) == []
    assert sizes == sorted(sizes, reverse=True)
    assert 4 <= len(sizes) <= 8, "each time less than a quarter is left"
    rig.assert_sound()


def test_block_is_rewritten_as_soon_as_too_little_of_it_is_left_and_not_before(rig: Rig) -> None:
    ids = rig.add(*[b"%d" % n * 100 for n in range(10)])
    polled = rig.poll(10)
    ((_, whole),) = rig.dump()["items"]
    assert len(whole) == 5 + 10 * 104

    rig.remove(ids[:7], polled.lease_id)

    # A block of 3 would have up to 347 bytes.
    assert rig.dump()["items"] == [(rig.queue.prefix + ids[9], whole)]
    rig.remove(ids[7:8], polled.lease_id)
    ((_, value),) = rig.dump()["items"]
    assert value == Block(whole).rewritten([8, 9])
    assert len(value) == 5 + 2 * 106
    ((_, leftover),) = rig.dump()["leftovers"]
    assert decode_leftover(leftover) == Leftover(len(value), 200, bits_of(8, 2))
    rig.assert_sound()


def test_rewritten_block_gives_its_items_their_columns_after_a_restart(rig: Rig) -> None:
    count = 100
    items = NewItems(
        [b"%d" % n * 50 for n in range(count)],
        keys=[f"k{n}" for n in range(count)],
        attributes=[{"n": str(n)} for n in range(count)],
        batch="b",
    )
    ids = list(rig.add_items(items).ids)
    kept = [13, 57, 58, 99]
    gone = [item_id for at, item_id in enumerate(ids) if at not in kept]
    assert all(cancel(rig.engine, rig.queue, gone, rig.now_ms))
    rig.reopen()

    polled = rig.poll(count)

    assert polled.ids == [ids[at] for at in kept]
    assert polled.contents == [items.contents[at] for at in kept]
    assert polled.details.keys == [items.keys[at] for at in kept]
    assert polled.details.attributes == [items.attributes[at] for at in kept]
    ((_, leftover),) = rig.dump()["leftovers"]
    assert positions_of(decode_leftover(leftover).bits) == kept
    rig.assert_sound()


# --- what must not be -----------------------------------------------------------------------------


def test_item_that_ends_twice_is_a_broken_rule_and_nothing_is_written(rig: Rig) -> None:
    ids = rig.add(b"a", b"b", b"c")
    cancel(rig.engine, rig.queue, ids[:1], rig.now_ms)
    disk, memory = rig.dump(), rig.memory()
    tx = Transaction(rig.engine.kernel, rig.now_ms, rig.queue)
    rig.queue.blocks.drop(tx, [run_of(ids[:2], 2, span=3)])

    with pytest.raises(InvariantViolation, match="I14"):
        tx.commit()

    assert (rig.dump(), rig.memory()) == (disk, memory)


def test_run_without_its_block_is_a_broken_rule(rig: Rig) -> None:
    ids = rig.add(b"a", b"b", b"c")
    rig.queue.blocks.forget_recent()
    batch = rig.store.batch()
    batch.delete(Family.ITEMS, rig.queue.prefix + ids[2])
    rig.store.write(batch)

    with pytest.raises(InvariantViolation, match="I2"):
        rig.poll(1)


# --- reading --------------------------------------------------------------------------------------


def test_reader_reads_each_block_once_and_only_when_it_is_asked(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = rig.add(b"a", b"bb")
    two = rig.add(b"ccc")
    reads: list[list[bytes]] = []
    get_many = rig.store.get_many

    def counted(family: Family, keys: list[bytes]) -> list[bytes | None]:
        reads.append(list(keys))
        return get_many(family, keys)

    monkeypatch.setattr(rig.store, "get_many", counted)
    reader = BlockReader(rig.store, rig.queue.prefix)
    runs = [run_of(one[:1], 1, span=2), run_of(one[1:], 2, at=1), run_of(two, 3)]

    sizes = reader.sizes(runs[0])
    assert reads == []
    assert (sizes.size(0, 1), sizes.size(1, 2), sizes.size(0, 2)) == (1, 2, 3)
    assert reads == [[rig.queue.prefix + one[1]]]
    reader.fetch(runs)
    assert reads[1:] == [[rig.queue.prefix + two[0]]]
    assert [reader[run].contents(run.at, run.count) for run in runs] == [[b"a"], [b"bb"], [b"ccc"]]
    assert len(reads) == 2
