"""Leases: byte for byte what Cap'n Proto makes of the schema, readable whoever made them."""

import struct
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from queueber.db.records.leases import HELD_BYTES, decode_lease, encode_lease, is_held, split_held
from queueber.db.records.marks import plain_mark
from queueber.schema import storage

numbers = st.integers(0, (1 << 64) - 1)
ids = st.binary(min_size=16, max_size=16)
marks = st.binary(min_size=14, max_size=14)
held_items = st.lists(st.tuples(ids, marks), max_size=20)


def as_held(items: list[tuple[bytes, bytes]]) -> bytes:
    return b"".join(item_id + mark for item_id, mark in items)


def in_segments(message: Any) -> bytes:
    """The message as its builder laid it out, in as many segments as it took."""
    encoded: bytes = message.to_bytes()
    return encoded


def segment_count(encoded: bytes) -> int:
    return int.from_bytes(encoded[:4], "little") + 1


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
