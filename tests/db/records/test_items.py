"""Items and leases: byte for byte what Cap'n Proto makes, and readable whoever made them."""

import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queueber.db.records.items import (
    HELD_BYTES,
    WORD,
    decode_details,
    decode_item,
    decode_items,
    decode_lease,
    encode_detailed_item,
    encode_item,
    encode_items,
    encode_lease,
    is_held,
    list_pointer,
    pack_attributes,
    padding,
    root_pointer,
    split_held,
    unpack_attributes,
    words,
)
from queueber.limits import MIB
from queueber.schema import storage
from tests.support.entries import plain_mark

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


texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))


def in_segments(message: Any) -> bytes:
    """The message as its builder laid it out, in as many segments as it took."""
    encoded: bytes = message.to_bytes()
    return encoded


def segment_count(encoded: bytes) -> int:
    return int.from_bytes(encoded[:4], "little") + 1


def without_unset_pointers(built: bytes) -> bytes:
    """An item as its builder makes it, less the two pointers that are null: as canonical form."""
    segments, size, root, low, high, key, attributes = struct.unpack_from("<II Q II QQ", built)
    assert (root, low, key, attributes) == (3 << 48, 2 << 2 | 1, 0, 0)
    return struct.pack("<II Q II", segments, size - 2, 1 << 48, 1, high) + built[40:]


@given(contents=st.binary(max_size=200))
def test_item_is_encoded_as_capnp_does_but_for_its_unset_pointers(contents: bytes) -> None:
    built = storage.StoredItem.new_message(contents=contents).to_bytes()

    assert encode_item(contents) == without_unset_pointers(built)
    assert decode_item(built) == contents


@given(
    contents=st.one_of(
        st.lists(st.binary(max_size=20), max_size=10),
        st.integers(0, 20).flatmap(lambda n: st.lists(st.binary(min_size=n, max_size=n))),
    )
)
def test_many_items_are_encoded_and_read_as_each_of_them(contents: list[bytes]) -> None:
    encoded = encode_items(contents)

    assert encoded == [encode_item(each) for each in contents]
    assert decode_items(encoded) == contents


@given(contents=st.lists(st.binary(min_size=8, max_size=8), min_size=1), key=st.binary(min_size=1))
def test_many_items_of_several_shapes_are_read_as_each_of_them(
    contents: list[bytes], key: bytes
) -> None:
    detailed = [encode_detailed_item(each, key, b"") for each in contents]
    built = [storage.StoredItem.new_message(contents=each).to_bytes() for each in contents]

    assert decode_items([*encode_items(contents), *detailed, *built]) == contents * 3


@given(contents=st.binary(max_size=200))
def test_item_is_read_by_capnp_and_by_us(contents: bytes) -> None:
    encoded = encode_item(contents)

    assert decode_item(encoded) == contents
    with storage.StoredItem.from_bytes(encoded) as item:
        assert item.contents == contents


@pytest.mark.parametrize("size", [0, 1, 7, 8, 9, 4096, 65_535, MIB + 3, 5 * MIB])
def test_item_of_any_size_round_trips(size: int) -> None:
    contents = bytes(range(256)) * (size // 256 + 1)
    contents = contents[:size]

    encoded = encode_item(contents)

    assert decode_item(encoded) == contents
    assert len(encoded) % 8 == 0


@pytest.mark.parametrize("size", [20_000, 3 * MIB, 5 * MIB + 1])
def test_item_built_in_several_segments_is_understood(size: int) -> None:
    """A builder starts with a small segment and puts what is large into another."""
    contents = (b"0123456789abcdef" * (size // 16 + 1))[:size]
    message = storage.StoredItem.new_message()
    message.contents = contents
    encoded = in_segments(message)

    assert segment_count(encoded) > 1
    assert decode_item(encoded) == contents


def test_item_with_contents_unset_is_empty() -> None:
    assert decode_item(storage.StoredItem.new_message().to_bytes()) == b""


def test_item_in_canonical_form_is_understood() -> None:
    """Trailing zeros are left out of a canonical message: the struct has no size at all."""
    canonical = struct.pack("<II Q", 0, 1, 0xFFFF_FFFC)
    with storage.StoredItem.from_bytes(canonical) as item:
        assert item.contents == b""

    assert decode_item(canonical) == b""


def test_item_of_a_later_schema_is_understood() -> None:
    """A struct that grew a data word and a pointer still has its contents in the first pointer."""
    contents = b"contents"
    later = struct.pack(
        "<II Q Q QQQQ", 0, 7, 1 << 32 | 4 << 48, 77, 3 << 2 | 1 | (8 << 3 | 2) << 32, 0, 0, 0
    )

    assert decode_item(later + contents) == contents
    assert decode_details(later + contents) == (b"", b"")


details = st.tuples(st.binary(max_size=40), st.binary(max_size=40)).filter(any)


@given(contents=st.binary(max_size=40), details=details)
def test_detailed_item_is_encoded_as_capnp_does(
    contents: bytes, details: tuple[bytes, bytes]
) -> None:
    key, attributes = details
    fields = {"key": key, "attributes": attributes}
    message = storage.StoredItem.new_message(contents=contents)
    for name, value in fields.items():
        if value:
            setattr(message, name, value)

    encoded = encode_detailed_item(contents, key, attributes)

    assert encoded == message.to_bytes()


@given(contents=st.binary(max_size=200), details=details)
def test_detailed_item_is_read_by_capnp_and_by_us(
    contents: bytes, details: tuple[bytes, bytes]
) -> None:
    encoded = encode_detailed_item(contents, *details)

    assert decode_item(encoded) == contents
    assert decode_details(encoded) == details
    with storage.StoredItem.from_bytes(encoded) as item:
        assert (item.contents, item.key, item.attributes) == (contents, *details)


@given(contents=st.binary(max_size=200))
def test_item_without_details_says_so(contents: bytes) -> None:
    assert decode_details(encode_item(contents)) == (b"", b"")


@pytest.mark.parametrize("size", [0, 20_000, 3 * MIB])
def test_detailed_item_built_in_several_segments_is_understood(size: int) -> None:
    contents, key = bytes(size), b"key" * 5000
    message = storage.StoredItem.new_message()
    message.contents, message.key, message.attributes = contents, key, b"attributes"
    encoded = in_segments(message)

    assert segment_count(encoded) > 1
    assert decode_item(encoded) == contents
    assert decode_details(encoded) == (key, b"attributes")


@given(attributes=st.dictionaries(texts, texts, max_size=8))
def test_attributes_round_trip_in_order(attributes: dict[str, str]) -> None:
    unpacked = unpack_attributes(pack_attributes(attributes))

    assert list(unpacked.items()) == list(attributes.items())


numbers = st.integers(0, (1 << 64) - 1)
ids = st.binary(min_size=16, max_size=16)
marks = st.binary(min_size=14, max_size=14)
held_items = st.lists(st.tuples(ids, marks), max_size=20)


def as_held(items: list[tuple[bytes, bytes]]) -> bytes:
    return b"".join(item_id + mark for item_id, mark in items)


@given(expires_at_ms=numbers, held=held_items)
def test_lease_is_encoded_as_capnp_does(
    expires_at_ms: int, held: list[tuple[bytes, bytes]]
) -> None:
    built = storage.LeaseEntry.new_message(expiresAtMs=expires_at_ms, held=as_held(held)).to_bytes()

    encoded = encode_lease(expires_at_ms, as_held(held))

    assert encoded == built
    assert decode_lease(built) == (expires_at_ms, as_held(held))
    assert decode_lease(encoded) == (expires_at_ms, as_held(held))
    with storage.LeaseEntry.from_bytes(encoded) as lease:
        assert (lease.expiresAtMs, lease.held) == (expires_at_ms, as_held(held))


@given(held=held_items)
def test_split_held_gives_ids_and_marks(held: list[tuple[bytes, bytes]]) -> None:
    assert split_held(as_held(held)) == held
    assert len(as_held(held)) == HELD_BYTES * len(held)


def test_split_held_gives_what_is_left_of_a_damaged_lease() -> None:
    held = [(b"i" * 16, b"m" * 14), (b"j" * 16, b"n" * 14)]

    assert split_held(as_held(held)[:-5]) == [held[0], (b"j" * 16, b"n" * 9)]


def test_lease_of_ten_thousand_items_in_several_segments_is_understood() -> None:
    held = as_held([(n.to_bytes(16), plain_mark(n)) for n in range(10_000)])
    message = storage.LeaseEntry.new_message(expiresAtMs=17)
    message.held = held
    encoded = in_segments(message)

    assert segment_count(encoded) > 1
    assert decode_lease(encoded) == (17, held)
    assert decode_lease(encode_lease(17, held)) == (17, held)


def test_lease_with_nothing_set_holds_nothing() -> None:
    assert decode_lease(storage.LeaseEntry.new_message().to_bytes()) == (0, b"")


def test_lease_in_canonical_form_is_understood() -> None:
    """Without its last pointer, which is null."""
    canonical = struct.pack("<II Q Q", 0, 2, 1 << 32, 123)
    with storage.LeaseEntry.from_bytes(canonical) as lease:
        assert (lease.expiresAtMs, lease.held) == (123, b"")

    assert decode_lease(canonical) == (123, b"")


@given(held=st.lists(st.tuples(ids, marks), max_size=5), other=ids)
def test_an_item_is_held_exactly_if_the_lease_names_it(
    held: list[tuple[bytes, bytes]], other: bytes
) -> None:
    packed = as_held(held)

    assert all(is_held(packed, item_id) for item_id, _ in held)
    assert is_held(packed, other) == (other in dict(held))


def test_bytes_of_an_id_elsewhere_in_a_lease_do_not_hold_it() -> None:
    # They begin in the mark of one item and end in the id of the next, and later stand where an
    # id does.
    packed = as_held([(bytes(16), b"\1" * 14), (b"\1" * 2 + b"\2" * 14, b"\3" * 14)])
    across = b"\1" * 14 + b"\1\1"

    assert not is_held(packed, across)
    assert is_held(packed + across + bytes(14), across)
