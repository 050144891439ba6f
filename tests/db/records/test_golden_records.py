"""Golden bytes of formats 2 and 3: items, leases and queues, which are the same in both.

They never change; another format has others, beside these. Format 1 was never released and is
refused, so none of it are kept.
"""

from queueber.db.records.items import (
    decode_details,
    decode_item,
    decode_lease,
    encode_detailed_item,
    encode_item,
    encode_lease,
    pack_attributes,
    unpack_attributes,
)
from queueber.db.records.keys import MarkFields, encode_mark
from queueber.db.records.queues import decode_queue, encode_queue
from queueber.model import QueueSettings
from tests.support.entries import plain_mark


def as_held(items: list[tuple[bytes, bytes]]) -> bytes:
    return b"".join(item_id + mark for item_id, mark in items)


ID_1 = bytes.fromhex("018bcfe568007abc9234567890abcdef")
ID_2 = bytes.fromhex("018bcfe568007abc9234567890abcdf0")

GOLDEN_ITEM = """
    0000000004000000 0000000000000100 010000006a000000 68656c6c6f2c2071 756575650a000000
"""
GOLDEN_DETAILED_ITEM = """
    0000000008000000 0000000000000300 090000002a000000 090000001a000000 0900000072000000
    68656c6c6f000000 6b65790000000000 00016100000002c3 b6000378797a0000
"""
GOLDEN_KEYED_ITEM = """
    0000000005000000 0000000000000300 0900000002000000 050000001a000000 0000000000000000
    6b65790000000000
"""
GOLDEN_LEASE = """
    000000000b000000 0000000001000100 6052e6cf8b010000 01000000e2010000 018bcfe568007abc
    9234567890abcdef 0000000d00000000 000000000500018b cfe568007abc9234 567890abcdf00000
    0000000000010002 0003040100000000
"""
GOLDEN_QUEUE = """
    0000000014000000 000000000e000200 0068e5cf8b010000 0100000000000000 0200000000000000
    0300000000000000 0400000000000000 0500000000000000 0800000000000000 000000000000f83f
    0900000000000000 000000000000d03f 0a00000000000000 0b00000000000000 0c00000000000000
    6052e6cf8b010000 050000003a000000 0500000015000000 6f72646572730000 0600000000000000
    0700000000000000
"""
GOLDEN_ATTRIBUTES = "0001 61 0000 0002 c3b6 0003 78797a"

ATTRIBUTES = {"a": "", "ö": "xyz"}
PACKED = bytes.fromhex(GOLDEN_ATTRIBUTES)
LEASE = (
    1_700_000_060_000,
    as_held([(ID_1, plain_mark(13)), (ID_2, encode_mark(MarkFields(0, 1, 2, 3, 4, 1)))]),
)
RECORD = (
    "orders",
    1_700_000_000_000,
    QueueSettings(
        items_max=1,
        bytes_max=2,
        item_bytes_max=3,
        lease_ms=4,
        attempts_max=5,
        backoff_ms=(6, 7),
        backoff_base_ms=8,
        backoff_factor=1.5,
        backoff_cap_ms=9,
        backoff_jitter=0.25,
        dedup_window_ms=10,
        result_age_ms=11,
        result_bytes_max=12,
    ),
    1_700_000_060_000,
)


def test_format_2_is_written_as_it_ever_was() -> None:
    assert encode_item(b"hello, queue\n") == bytes.fromhex(GOLDEN_ITEM)
    assert encode_detailed_item(b"hello", b"key", PACKED) == bytes.fromhex(GOLDEN_DETAILED_ITEM)
    assert encode_detailed_item(b"", b"key", b"") == bytes.fromhex(GOLDEN_KEYED_ITEM)
    assert encode_lease(*LEASE) == bytes.fromhex(GOLDEN_LEASE)
    assert encode_queue(*RECORD) == bytes.fromhex(GOLDEN_QUEUE)
    assert pack_attributes(ATTRIBUTES) == PACKED


def test_format_2_is_read_as_it_ever_was() -> None:
    assert decode_item(bytes.fromhex(GOLDEN_ITEM)) == b"hello, queue\n"
    assert decode_item(bytes.fromhex(GOLDEN_DETAILED_ITEM)) == b"hello"
    assert decode_details(bytes.fromhex(GOLDEN_DETAILED_ITEM)) == (b"key", PACKED)
    assert decode_item(bytes.fromhex(GOLDEN_KEYED_ITEM)) == b""
    assert decode_details(bytes.fromhex(GOLDEN_KEYED_ITEM)) == (b"key", b"")
    assert decode_lease(bytes.fromhex(GOLDEN_LEASE)) == LEASE
    assert decode_queue(bytes.fromhex(GOLDEN_QUEUE)) == RECORD
    assert unpack_attributes(PACKED) == ATTRIBUTES
