"""The layout of messages put together by hand, against the numbers of the encoding's own text."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queueber.db.records.capnp_layout import WORD, list_pointer, padding, root_pointer, words
from queueber.schema import storage

sizes = st.integers(0, 1 << 28)


@given(size=sizes)
def test_padding_fills_the_last_word(size: int) -> None:
    filled = size + len(padding(size))

    assert filled == words(size) * WORD
    assert 0 <= filled - size < WORD
    assert set(padding(size)) <= {0}


@given(data_words=st.integers(0, 0xFFFF), pointers=st.integers(0, 0xFFFF))
def test_root_pointer_is_a_struct_at_the_very_next_word(data_words: int, pointers: int) -> None:
    encoded = root_pointer(data_words, pointers).to_bytes(8, "little")

    assert struct.unpack("<iHH", encoded) == (0, data_words, pointers)


@given(offset=st.integers(0, (1 << 29) - 1), size=sizes)
def test_list_pointer_is_of_bytes_at_its_offset(offset: int, size: int) -> None:
    low, high = struct.unpack("<iI", list_pointer(offset, size).to_bytes(8, "little"))

    assert (low >> 2, low & 3) == (offset, 1)
    assert (high >> 3, high & 7) == (size, 2)


@pytest.mark.parametrize("size", [0, 1, 7, 8, 9, 600])
def test_message_put_together_of_these_is_read_by_capnp(size: int) -> None:
    contents = bytes(range(256)) * 3
    contents = contents[:size]
    segment = struct.pack("<QQQQ", root_pointer(0, 3), list_pointer(2, size), 0, 0)
    segment += contents + padding(size)

    message = struct.pack("<II", 0, len(segment) // WORD) + segment

    with storage.StoredItem.from_bytes(message) as item:
        assert (item.contents, item.key, item.attributes) == (contents, b"", b"")
