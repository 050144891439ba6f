"""Items: byte for byte what Cap'n Proto makes of the schema, and readable whoever made them."""

import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queueber.db.records.items import (
    decode_details,
    decode_item,
    decode_items,
    encode_detailed_item,
    encode_item,
    encode_items,
    pack_attributes,
    unpack_attributes,
)
from queueber.limits import MIB
from queueber.schema import storage

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
