"""Records: byte for byte what Cap'n Proto makes of the schema, and readable whoever made them."""

import struct
from dataclasses import astuple
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queueber.db.keys import LOWEST_DUE, NEVER_MS
from queueber.db.records import (
    HELD_BYTES,
    Counters,
    decode_counters,
    decode_in_progress,
    decode_item,
    decode_lease,
    decode_queue,
    decode_size,
    encode_counters,
    encode_in_progress,
    encode_item,
    encode_lease,
    encode_queue,
    encode_size,
    split_held,
)
from queueber.limits import MIB
from queueber.model import QueueSettings
from queueber.schema import storage

numbers = st.integers(0, (1 << 64) - 1)
sizes = st.integers(0, (1 << 32) - 1)
ids = st.binary(min_size=16, max_size=16)
held_items = st.lists(st.tuples(ids, sizes), max_size=20)
counters_of_any_kind = st.builds(
    Counters,
    *[numbers] * 12,
    ready_low=st.binary(min_size=24, max_size=24),
    last_id=ids,
)


def as_held(items: list[tuple[bytes, int]]) -> bytes:
    return b"".join(item_id + size.to_bytes(4) for item_id, size in items)


def in_segments(message: Any) -> bytes:
    """The message as its builder laid it out, in as many segments as it took."""
    encoded: bytes = message.to_bytes()
    return encoded


def segment_count(encoded: bytes) -> int:
    return int.from_bytes(encoded[:4], "little") + 1


# --- StoredItem -----------------------------------------------------------------------------------


@given(contents=st.binary(max_size=200))
def test_item_is_encoded_as_capnp_does(contents: bytes) -> None:
    built = storage.StoredItem.new_message(contents=contents).to_bytes()

    assert encode_item(contents) == built
    assert decode_item(built) == contents


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
        "<II Q Q QQ", 0, 5, 1 << 32 | 2 << 48, 77, 1 << 2 | 1 | (8 << 3 | 2) << 32, 0
    )

    assert decode_item(later + contents) == contents


# --- LeaseEntry -----------------------------------------------------------------------------------


@given(expires_at_ms=numbers, held=held_items)
def test_lease_is_encoded_as_capnp_does(expires_at_ms: int, held: list[tuple[bytes, int]]) -> None:
    built = storage.LeaseEntry.new_message(expiresAtMs=expires_at_ms, held=as_held(held)).to_bytes()

    encoded = encode_lease(expires_at_ms, as_held(held))

    assert encoded == built
    assert decode_lease(built) == (expires_at_ms, as_held(held))
    assert decode_lease(encoded) == (expires_at_ms, as_held(held))
    with storage.LeaseEntry.from_bytes(encoded) as lease:
        assert (lease.expiresAtMs, lease.held) == (expires_at_ms, as_held(held))


@given(held=held_items)
def test_split_held_gives_ids_and_sizes(held: list[tuple[bytes, int]]) -> None:
    assert split_held(as_held(held)) == held
    assert len(as_held(held)) == HELD_BYTES * len(held)


def test_lease_of_ten_thousand_items_in_several_segments_is_understood() -> None:
    held = as_held([(n.to_bytes(16), n) for n in range(10_000)])
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


# --- sizes and in-progress entries ----------------------------------------------------------------


@given(size=sizes, lease_id=ids)
def test_sizes_and_in_progress_entries_round_trip(size: int, lease_id: bytes) -> None:
    assert decode_size(encode_size(size)) == size
    assert len(encode_size(size)) == 4
    assert decode_in_progress(encode_in_progress(lease_id, size)) == (lease_id, size)
    assert len(encode_in_progress(lease_id, size)) == HELD_BYTES


# --- QueueCounters --------------------------------------------------------------------------------


def built_counters(counters: Counters) -> bytes:
    names = [field.name for field in list(storage.QueueCounters.schema.node.struct.fields)]
    values = dict(zip(names, astuple(counters), strict=True))
    encoded: bytes = storage.QueueCounters.new_message(**values).to_bytes()
    return encoded


@given(counters=counters_of_any_kind)
def test_counters_are_encoded_as_capnp_does(counters: Counters) -> None:
    assert encode_counters(counters) == built_counters(counters)


@given(counters=counters_of_any_kind)
def test_counters_round_trip(counters: Counters) -> None:
    assert decode_counters(encode_counters(counters)) == counters


@given(counters=counters_of_any_kind)
def test_counters_copy_is_equal_and_apart(counters: Counters) -> None:
    copied = counters.copy()
    assert copied == counters

    for name in Counters.__slots__:
        value = getattr(counters, name)
        setattr(copied, name, value + (b"\1" if isinstance(value, bytes) else 1))

    assert all(getattr(copied, name) != getattr(counters, name) for name in Counters.__slots__)


def test_counters_of_a_new_queue_have_nothing_due() -> None:
    counters = Counters()

    assert astuple(counters) == (*[0] * 10, NEVER_MS, NEVER_MS, LOWEST_DUE, bytes(16))


def test_counters_with_nothing_set_are_zero() -> None:
    decoded = decode_counters(storage.QueueCounters.new_message().to_bytes())

    assert astuple(decoded) == (*[0] * 12, b"", b"")


# --- QueueRecord ----------------------------------------------------------------------------------


@given(
    name=st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")),
    created_at_ms=numbers,
    settings=st.builds(QueueSettings, numbers, numbers, numbers),
)
def test_queue_round_trips(name: str, created_at_ms: int, settings: QueueSettings) -> None:
    encoded = encode_queue(name, created_at_ms, settings)

    assert decode_queue(encoded) == (name, created_at_ms, settings)


def test_queue_with_nothing_set_has_no_name_and_no_limits() -> None:
    encoded = storage.QueueRecord.new_message().to_bytes()

    assert decode_queue(encoded) == ("", 0, QueueSettings())


# --- golden bytes of format 1 ---------------------------------------------------------------------
# Written by the first version. They never change; another format has others, beside these.

ID_1 = bytes.fromhex("018bcfe568007abc9234567890abcdef")
ID_2 = bytes.fromhex("018bcfe568007abc9234567890abcdf0")

GOLDEN_ITEM = """
    0000000004000000 0000000000000100 010000006a000000 68656c6c6f2c2071 756575650a000000
"""
GOLDEN_LEASE = """
    0000000008000000 0000000001000100 6052e6cf8b010000 0100000042010000 018bcfe568007abc
    9234567890abcdef 0000000d018bcfe5 68007abc92345678 90abcdf000000000
"""
GOLDEN_COUNTERS = """
    0000000014000000 000000000c000200 0100000000000000 0200000000000000 0300000000000000
    0400000000000000 0500000000000000 0600000000000000 0700000000000000 0800000000000000
    0900000000000000 0a00000000000000 6052e6cf8b010000 ffffffffffffffff 05000000c2000000
    0d00000082000000 0000018bcfe56800 018bcfe568007abc 9234567890abcdef 018bcfe568007abc
    9234567890abcdf0
"""
GOLDEN_QUEUE = """
    0000000007000000 0000000004000100 0068e5cf8b010000 0100000000000000 0200000000000000
    0300000000000000 010000003a000000 6f72646572730000
"""
GOLDEN_IN_PROGRESS = "018bcfe568007abc 9234567890abcdef 0000000d"
GOLDEN_SIZE = "0000000d"

LEASE = (1_700_000_060_000, as_held([(ID_1, 13), (ID_2, 0)]))
COUNTERS = Counters(
    ready=1,
    delayed=2,
    in_progress=3,
    leases=4,
    contents_bytes=5,
    added_total=6,
    polled_total=7,
    removed_total=8,
    expired_total=9,
    extended_total=10,
    lease_due_ms=1_700_000_060_000,
    delayed_due_ms=NEVER_MS,
    ready_low=(1_700_000_000_000).to_bytes(8) + ID_1,
    last_id=ID_2,
)
RECORD = ("orders", 1_700_000_000_000, QueueSettings(items_max=1, bytes_max=2, item_bytes_max=3))


def test_format_1_is_written_as_it_ever_was() -> None:
    assert encode_item(b"hello, queue\n") == bytes.fromhex(GOLDEN_ITEM)
    assert encode_lease(*LEASE) == bytes.fromhex(GOLDEN_LEASE)
    assert encode_counters(COUNTERS) == bytes.fromhex(GOLDEN_COUNTERS)
    assert encode_queue(*RECORD) == bytes.fromhex(GOLDEN_QUEUE)
    assert encode_in_progress(ID_1, 13) == bytes.fromhex(GOLDEN_IN_PROGRESS)
    assert encode_size(13) == bytes.fromhex(GOLDEN_SIZE)


def test_format_1_is_read_as_it_ever_was() -> None:
    assert decode_item(bytes.fromhex(GOLDEN_ITEM)) == b"hello, queue\n"
    assert decode_lease(bytes.fromhex(GOLDEN_LEASE)) == LEASE
    assert decode_counters(bytes.fromhex(GOLDEN_COUNTERS)) == COUNTERS
    assert decode_queue(bytes.fromhex(GOLDEN_QUEUE)) == RECORD
    assert decode_in_progress(bytes.fromhex(GOLDEN_IN_PROGRESS)) == (ID_1, 13)
    assert decode_size(bytes.fromhex(GOLDEN_SIZE)) == 13
