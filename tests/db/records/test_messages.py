"""Blocks of messages, and the references that name messages."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queueber.db.records.blocks import encode_block as encode_contents
from queueber.db.records.log import block_key, encode_block
from queueber.db.records.messages import (
    MessageBlock,
    contents_of,
    encode_messages,
    read_message_head,
    with_contents,
)
from queueber.ids import reference, split_reference

FIRST_ID = bytes(range(16))
CONTENTS = encode_contents([b"a", b"bb"], [b"k", b""], [b"", b""])
VALUE = encode_block(
    encode_messages(FIRST_ID, 77, CONTENTS), first_offset=5, appended_at_ms=9, position=3
)
KEY = block_key(b"\0\0\0\1", 6)


def test_a_block_of_messages_has_its_golden_bytes() -> None:
    assert (
        (5).to_bytes(8) + (9).to_bytes(8) + (3).to_bytes(8) + FIRST_ID + (77).to_bytes(8) + CONTENTS
    ) == VALUE


def test_a_block_is_read_as_it_was_written() -> None:
    block = MessageBlock(KEY, VALUE)

    assert (block.first_offset, block.end_offset, block.appended_at_ms) == (5, 7, 9)
    assert (block.first_id, block.sequence) == read_message_head(VALUE) == (FIRST_ID, 77)
    assert block.block.contents(0, 2) == [b"a", b"bb"]


def test_a_block_that_lost_messages_keeps_its_head_and_span() -> None:
    value = with_contents(VALUE, contents_of(VALUE).rewritten([1]))

    block = MessageBlock(KEY, value)
    assert (block.end_offset - block.first_offset, list(block.block.positions)) == (2, [1])
    assert (block.first_id, block.sequence) == (FIRST_ID, 77)


def test_a_block_under_the_key_of_another_is_refused() -> None:
    with pytest.raises(ValueError, match="2 messages has offsets from 5 to 8"):
        MessageBlock(block_key(b"\0\0\0\1", 7), VALUE)


@pytest.mark.parametrize("size", [0, 24, 47])
def test_a_value_that_is_too_short_is_refused(size: int) -> None:
    with pytest.raises(ValueError, match="bytes"):
        MessageBlock(KEY, VALUE[:size])


places = st.tuples(st.integers(0, 255), st.integers(0, (1 << 64) - 1))


@given(places, places)
def test_references_sort_as_partition_and_offset_do(a: tuple[int, int], b: tuple[int, int]) -> None:
    assert (reference(*a) < reference(*b)) == (a < b)
    assert split_reference(reference(*a)) == a


@pytest.mark.parametrize("item_id", [b"", bytes(15), b"\1" + bytes(15), bytes(17)])
def test_bytes_that_are_no_reference_are_refused(item_id: bytes) -> None:
    with pytest.raises(ValueError, match="does not name a message"):
        split_reference(item_id)
