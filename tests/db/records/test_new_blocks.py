"""New items are cut into blocks, and what is left of a block keeps the disk small."""

from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queueber.db.records.blocks import (
    Block,
    Leftover,
    NewBlock,
    bits_of,
    decode_leftover,
    encode_block,
    encode_leftover,
    make_blocks,
    pack_attributes,
    positions_of,
    rewritten_bytes,
)
from queueber.limits import BLOCK_BYTES_MAX, BLOCK_ITEMS_MAX, BLOCK_WASTE_FACTOR
from queueber.model import NewItems, Rows

lengths = st.sampled_from(
    [0, 1, 20_000, BLOCK_BYTES_MAX - 1, BLOCK_BYTES_MAX, BLOCK_BYTES_MAX + 1, 200_000]
)
keys = st.sampled_from(["", "key", "größe" * 5000])
attributes = st.sampled_from([{}, {"a": ""}, {"ö": "x" * 30_000}])


@st.composite
def new_items(draw: st.DrawFn) -> NewItems:
    contents = [bytes([at]) * length for at, length in enumerate(draw(st.lists(lengths)))]
    count = len(contents)
    return NewItems(
        contents,
        keys=draw(st.one_of(st.just(()), st.lists(keys, min_size=count, max_size=count))),
        attributes=draw(
            st.one_of(st.just(()), st.lists(attributes, min_size=count, max_size=count))
        ),
    )


def details_of(items: NewItems) -> list[tuple[bytes, bytes]]:
    count = len(items.contents)
    return [
        (key.encode(), pack_attributes(attributes))
        for key, attributes in zip(
            items.keys or [""] * count, items.attributes or [{}] * count, strict=True
        )
    ]


def sizes_of(items: NewItems) -> list[int]:
    return [
        len(contents) + len(key) + len(packed)
        for contents, (key, packed) in zip(items.contents, details_of(items), strict=True)
    ]


def fits(sizes: Sequence[int]) -> bool:
    """Whether items of these sizes may be in one block."""
    within = len(sizes) <= BLOCK_ITEMS_MAX and sum(sizes) <= BLOCK_BYTES_MAX
    return within or len(sizes) == 1


@given(items=new_items())
def test_make_blocks_has_every_item_in_order_in_blocks_as_long_as_may_be(items: NewItems) -> None:
    sizes, details = sizes_of(items), details_of(items)

    made = list(make_blocks(items))

    cuts = [0, *[block.stop for block in made]]
    assert [(block.start, block.stop) for block in made] == list(pairwise(cuts))
    assert cuts[-1] == len(items.contents)
    for block in made:
        start, stop = block.start, block.stop
        read = Block(block.value)
        assert fits(sizes[start:stop])
        assert stop == len(sizes) or not fits(sizes[start : stop + 1])
        assert read.contents(0, stop - start) == items.contents[start:stop]
        assert list(zip(*read.details(0, stop - start), strict=True)) == details[start:stop]
        assert block.has_details == read.has_details == any(map(any, details))


@given(items=new_items(), data=st.data())
def test_new_block_knows_the_sizes_of_its_items_as_the_stored_one_does(
    items: NewItems, data: st.DataObject
) -> None:
    for block in make_blocks(items):
        count = block.stop - block.start
        start = data.draw(st.integers(0, count - 1))
        stop = data.draw(st.integers(start + 1, count))

        assert block.size(start, stop) == Block(block.value).size(start, stop)


def test_make_blocks_of_many_small_items_cuts_after_as_many_as_a_block_may_have() -> None:
    made = list(make_blocks(Rows([b"x"] * (2 * BLOCK_ITEMS_MAX + 3))))

    assert [block.stop - block.start for block in made] == [BLOCK_ITEMS_MAX, BLOCK_ITEMS_MAX, 3]


def test_make_blocks_puts_a_large_item_into_a_block_of_its_own() -> None:
    large = bytes(BLOCK_BYTES_MAX + 1)

    made = list(make_blocks(NewItems([b"a", b"", large, b"", b"b"])))

    assert [(block.start, block.stop) for block in made] == [(0, 2), (2, 3), (3, 5)]


def test_make_blocks_without_items_makes_none() -> None:
    assert list(make_blocks(NewItems([]))) == []


def test_make_blocks_without_details_has_no_columns_for_them() -> None:
    """An empty key is no key."""
    (block,) = make_blocks(NewItems([b"ab", b"c"], keys=["", ""], attributes=[{}, {}]))

    assert block == NewBlock(0, 2, encode_block([b"ab", b"c"]), [2, 3], has_details=False)


# --- what is left ---------------------------------------------------------------------------------

numbers = st.integers(0, (1 << 32) - 1)
bits = st.integers(1, (1 << 512) - 1)


@given(left=st.builds(Leftover, stored=numbers, size=numbers, bits=bits))
def test_leftover_round_trips(left: Leftover) -> None:
    assert decode_leftover(encode_leftover(left)) == left
    assert left.count == len(positions_of(left.bits))


@pytest.mark.parametrize("size", [0, 7])
def test_leftover_cut_short_is_refused(size: int) -> None:
    with pytest.raises(ValueError, match="not even 8"):
        decode_leftover(bytes(size))


@given(positions=st.sets(st.integers(0, 511)))
def test_bits_are_those_of_the_positions(positions: set[int]) -> None:
    assert positions_of(sum(bits_of(at, 1) for at in positions)) == sorted(positions)


@given(at=st.integers(0, 511), count=st.integers(0, 512))
def test_bits_of_consecutive_positions_are_those_of_each(at: int, count: int) -> None:
    assert positions_of(bits_of(at, count)) == list(range(at, at + count))


contents = st.lists(st.integers(0, 300).map(bytes), min_size=1, max_size=20)


@given(contents=contents, has_keys=st.booleans(), data=st.data())
def test_block_is_wasteful_neither_when_new_nor_when_rewritten(
    contents: list[bytes], has_keys: bool, data: st.DataObject
) -> None:
    count = len(contents)
    columns = ([b"k"] * count, [b""] * count) if has_keys else ((), ())
    block = Block(encode_block(contents, *columns))
    left = sorted(data.draw(st.sets(st.integers(0, count - 1), min_size=1)))
    size = sum(block.size(at, at + 1) for at in left)

    rewritten = block.rewritten(left)

    whole = Leftover(len(block.value), block.size(0, count), bits_of(0, count))
    after = Leftover(len(rewritten), size, sum(bits_of(at, 1) for at in left))
    assert not whole.is_wasteful
    assert not after.is_wasteful
    assert len(rewritten) <= rewritten_bytes(size, len(left))


@given(size=st.integers(0, 100_000), left=bits)
def test_block_is_wasteful_once_it_has_more_than_so_many_times_what_is_left(
    size: int, left: int
) -> None:
    most = BLOCK_WASTE_FACTOR * rewritten_bytes(size, left.bit_count())

    assert not Leftover(most, size, left).is_wasteful
    assert Leftover(most + 1, size, left).is_wasteful
