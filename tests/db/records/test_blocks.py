"""Blocks: any range of their items is read as it was written, also after a rewrite."""

import struct
from contextlib import suppress
from functools import partial
from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queueber.db.records.blocks import (
    Block,
    encode_block,
    pack_attributes,
    unpack_attributes,
)

Row = tuple[bytes, bytes, bytes]
"""Contents, key and attributes of an item, as they are stored."""

short = st.one_of(st.just(b""), st.binary(max_size=12))
rows_of_any_kind = st.lists(st.tuples(short, short, short), min_size=1, max_size=9)
texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))


def block_of(rows: list[Row], *, has_details: bool) -> Block:
    contents, keys, attributes = (list(column) for column in zip(*rows, strict=True))
    if has_details:
        return Block(encode_block(contents, keys, attributes))
    return Block(encode_block(contents))


@st.composite
def blocks(draw: st.DrawFn) -> tuple[list[Row], Block]:
    rows = draw(rows_of_any_kind)
    has_details = draw(st.booleans())
    if not has_details:
        rows = [(contents, b"", b"") for contents, _, _ in rows]
    return rows, block_of(rows, has_details=has_details)


def ranges(count: int) -> list[tuple[int, int]]:
    """Start and stop of every range, also of the empty ones."""
    return [(start, stop) for start in range(count + 1) for stop in range(start, count + 1)]


def size_of(rows: list[Row]) -> int:
    return sum(len(each) for row in rows for each in row)


def check_reads(block: Block, rows: list[Row], start: int, stop: int) -> None:
    """The block has these rows from `start` up to `stop`, whichever way it is asked."""
    count = stop - start
    contents = [row[0] for row in rows]
    assert block.contents(start, count) == contents
    assert block.details(start, count) == ([row[1] for row in rows], [row[2] for row in rows])
    assert block.size(start, stop) == size_of(rows)
    ends, packed = block.packed(start, count)
    assert packed == b"".join(contents)
    assert list(struct.unpack(f"<{count}I", ends)) == list(accumulate(map(len, contents)))


@given(drawn=blocks())
def test_every_range_of_a_block_is_read_as_it_was_written(drawn: tuple[list[Row], Block]) -> None:
    rows, block = drawn

    assert block.span == len(rows)
    assert block.positions == range(len(rows))
    for start, stop in ranges(len(rows)):
        check_reads(block, rows[start:stop], start, stop)


@given(rows=rows_of_any_kind)
def test_block_has_details_exactly_if_it_was_given_some(rows: list[Row]) -> None:
    contents = [row[0] for row in rows]

    assert block_of(rows, has_details=True).has_details
    assert not block_of(rows, has_details=False).has_details
    assert block_of(rows, has_details=False).details(0, len(rows)) == (
        [b""] * len(contents),
        [b""] * len(contents),
    )


@given(drawn=blocks(), bytes_max=st.integers(0, 150), extra=st.integers(0, 10), data=st.data())
def test_fitting_counts_the_items_up_to_the_first_that_is_too_much(
    drawn: tuple[list[Row], Block], bytes_max: int, extra: int, data: st.DataObject
) -> None:
    rows, block = drawn
    start, stop = data.draw(st.sampled_from(ranges(len(rows))))

    found = block.fitting(start, stop - start, bytes_max, extra=extra)

    totals = accumulate(size_of([row]) + extra for row in rows[start:stop])
    assert found == sum(total <= bytes_max for total in totals)


# --- rewritten blocks -----------------------------------------------------------------------------


def some_positions(count: int) -> st.SearchStrategy[list[int]]:
    return st.sets(st.integers(0, count - 1), min_size=1).map(sorted)


def is_left(left: list[int], start: int, stop: int) -> bool:
    return set(range(start, stop)) <= set(left)


@given(drawn=blocks(), data=st.data())
def test_rewritten_block_is_read_as_the_whole_one_where_items_are_left(
    drawn: tuple[list[Row], Block], data: st.DataObject
) -> None:
    rows, block = drawn
    left = data.draw(some_positions(len(rows)))

    rewritten = Block(block.rewritten(left))

    assert rewritten.span == len(rows)
    assert list(rewritten.positions) == left
    assert rewritten.has_details == block.has_details
    for start, stop in ranges(len(rows)):
        if is_left(left, start, stop):
            check_reads(rewritten, rows[start:stop], start, stop)
            assert rewritten.fitting(start, stop - start, 20, extra=1) == block.fitting(
                start, stop - start, 20, extra=1
            )


@given(drawn=blocks(), data=st.data())
def test_read_of_an_item_that_is_gone_is_refused(
    drawn: tuple[list[Row], Block], data: st.DataObject
) -> None:
    """It must not give the values of another item."""
    rows, block = drawn
    left = data.draw(some_positions(len(rows)))
    rewritten = Block(block.rewritten(left))

    for start, stop in ranges(len(rows) + 1):
        if not is_left(left, start, stop):
            for read in (rewritten.contents, rewritten.packed, rewritten.details):
                with pytest.raises(IndexError, match="has not all"):
                    read(start, stop - start)
            with pytest.raises(IndexError, match="has not all"):
                rewritten.size(start, stop)


@given(drawn=blocks(), data=st.data())
def test_rewriting_in_steps_gives_the_same_bytes_as_at_once(
    drawn: tuple[list[Row], Block], data: st.DataObject
) -> None:
    rows, block = drawn
    left = data.draw(some_positions(len(rows)))
    fewer = [left[at] for at in data.draw(some_positions(len(left)))]

    assert block.rewritten(range(len(rows))) == block.value
    assert Block(block.rewritten(left)).rewritten(fewer) == block.rewritten(fewer)


# --- values that are no blocks --------------------------------------------------------------------


@given(drawn=blocks(), data=st.data())
def test_block_cut_short_or_made_longer_is_refused(
    drawn: tuple[list[Row], Block], data: st.DataObject
) -> None:
    rows, block = drawn
    value = block.rewritten(data.draw(some_positions(len(rows))))
    tail = data.draw(st.binary(min_size=1, max_size=9))

    for size in range(len(value)):
        with pytest.raises(ValueError, match="block"):
            Block(value[:size])
    with pytest.raises(ValueError, match="do not fill"):
        Block(value + tail)


@pytest.mark.parametrize(
    "value", ["00 0000 0000", "00 0100 0000 78", "00 0100 0200 01000000 02000000 7879"]
)
def test_block_of_no_items_or_more_items_than_ids_is_refused(value: str) -> None:
    with pytest.raises(ValueError, match="do not fill"):
        Block(bytes.fromhex(value))


@pytest.mark.parametrize("positions", [[2, 1], [1, 1], [1, 3]])
def test_block_whose_positions_do_not_rise_up_to_its_span_is_refused(positions: list[int]) -> None:
    value = Block(encode_block([b"a", b"b", b"c"])).rewritten([0, 1])
    damaged = value[:5] + struct.pack("<2H", *positions) + value[9:]

    with pytest.raises(ValueError, match="do not rise"):
        Block(damaged)


def test_values_that_overlap_are_refused() -> None:
    """The ends within a column are checked when they are read: a poll reads few of them."""
    value = encode_block([b"aa", b"bb", b"cc", b"dd"])
    damaged = Block(value[:9] + struct.pack("<2I", 7, 1) + value[17:])

    with pytest.raises(ValueError, match="overlap"):
        damaged.contents(0, 4)
    with pytest.raises(ValueError, match="overlap"):
        damaged.contents(2, 1)
    with pytest.raises(ValueError, match="overlap"):
        damaged.packed(2, 2)
    with pytest.raises(ValueError, match="overlap"):
        damaged.rewritten([3])


def test_values_past_the_end_of_their_column_are_refused() -> None:
    value = encode_block([b"aa", b"bb", b"cc"], [b"key"] * 3, [b""] * 3)
    damaged = Block(value[:9] + struct.pack("<I", 7) + value[13:])

    assert damaged.contents(0, 1) == [b"aa"]
    with pytest.raises(ValueError, match="overlap"):
        damaged.contents(0, 2)


@given(drawn=blocks(), data=st.data())
def test_damaged_block_raises_nothing_but_what_it_says(
    drawn: tuple[list[Row], Block], data: st.DataObject
) -> None:
    rows, block = drawn
    value = bytearray(block.rewritten(data.draw(some_positions(len(rows)))))
    for at in data.draw(st.sets(st.integers(0, len(value) - 1), min_size=1, max_size=3)):
        value[at] = data.draw(st.one_of(st.integers(0, 9), st.integers(0, 255)))

    read_all(bytes(value))


@given(value=st.binary(max_size=60))
def test_any_bytes_raise_nothing_but_what_a_block_says(value: bytes) -> None:
    read_all(value)


def read_all(value: bytes) -> None:
    """Read the value in every way; what is no block may only be refused."""
    try:
        block = Block(value)
    except ValueError:
        return
    for start, stop in ranges(min(block.span, 9)):
        count = stop - start
        for read in (
            partial(block.contents, start, count),
            partial(block.packed, start, count),
            partial(block.details, start, count),
            partial(block.size, start, stop),
            partial(block.fitting, start, count, 10, extra=1),
            partial(block.rewritten, range(start, stop)),
        ):
            with suppress(ValueError, IndexError):
                read()


# --- attributes -----------------------------------------------------------------------------------


@given(attributes=st.dictionaries(texts, texts, max_size=8))
def test_attributes_round_trip_in_order(attributes: dict[str, str]) -> None:
    unpacked = unpack_attributes(pack_attributes(attributes))

    assert list(unpacked.items()) == list(attributes.items())
