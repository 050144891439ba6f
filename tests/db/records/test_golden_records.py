"""Golden bytes of format 5: runs, blocks and leases; and queues, which are as in format 2.

They never change; another format has others, beside these. What only an upgrade reads is tested
with the upgrade.
"""

from dataclasses import replace
from typing import Any

from queueber.db.records.blocks import (
    Block,
    Leftover,
    decode_leftover,
    encode_block,
    encode_leftover,
    pack_attributes,
    unpack_attributes,
)
from queueber.db.records.dead_letters import decode_dead, encode_dead
from queueber.db.records.leases import decode_lease, encode_lease
from queueber.db.records.queues import decode_queue, encode_queue
from queueber.db.records.runs import (
    MarkFields,
    decode_held,
    decode_mark,
    decode_run,
    encode_held,
    encode_mark,
    encode_run,
    make_run,
)
from queueber.ids import ItemId
from queueber.limits import BATCH_KEEP_MS, BATCHES_MAX
from queueber.model import QueueSettings
from tests.support.entries import PLAIN_MARK, plain_run

NOW_MS = 1_700_000_000_000
ID_1 = ItemId(bytes.fromhex("018bcfe568007abc9234567890abcdef"))
ID_2 = ItemId(bytes.fromhex("018bcfe568007abc9234567890abcdf0"))

# Batch, attempts, group max, priority, flags.
GOLDEN_MARK = bytes.fromhex("05060708 0a0b 0c0d 09 01")
GOLDEN_PLAIN_MARK = bytes.fromhex("00000000 0000 0000 05 00")
# Count, position in the block, ids of the block, bytes, mark.
GOLDEN_RUN = bytes.fromhex("0102 0003 0200 01020304") + GOLDEN_MARK
GOLDEN_SINGLE = bytes.fromhex("0001 0000 0001 0000000d") + GOLDEN_PLAIN_MARK
GOLDEN_HELD = ID_1 + GOLDEN_SINGLE + ID_2 + GOLDEN_RUN
# Died-at, reason, run.
GOLDEN_DEAD = bytes.fromhex("0000018bcfe56800 02") + GOLDEN_RUN
GOLDEN_LEASE = """
    000000000c000000 0000000001000100 6052e6cf8b010000 0100000042020000 018bcfe568007abc
    9234567890abcdef 0001000000010000 000d000000000000 00000500018bcfe5 68007abc92345678
    90abcdf001020003 0200010203040506 07080a0b0c0d0901
"""
# Flags, ids, items; ends and values of each column.
GOLDEN_BLOCK = """
    00 0300 0300
    05000000 05000000 08000000 68656c6c6f 616263
"""
GOLDEN_DETAILED_BLOCK = """
    01 0200 0200
    05000000 06000000 68656c6c6f 61
    03000000 03000000 6b6579
    00000000 0e000000 0001 61 0000 0002 c3b6 0003 78797a
"""
# The same, of which the second item is gone: with the positions of the others.
GOLDEN_SPARSE_BLOCK = """
    00 0300 0200 0000 0200
    05000000 08000000 68656c6c6f 616263
"""
GOLDEN_SPARSE_DETAILED_BLOCK = """
    01 0200 0100 0100
    01000000 61
    00000000
    0e000000 0001 61 0000 0002 c3b6 0003 78797a
"""
# Bytes stored, bytes left, a bit for each position.
GOLDEN_LEFTOVER = bytes.fromhex("04030201 08070605 05 80")
GOLDEN_QUEUE_WITHOUT_CAPS = """
    0000000014000000 000000000e000200 0068e5cf8b010000 0100000000000000 0200000000000000
    0300000000000000 0400000000000000 0500000000000000 0800000000000000 000000000000f83f
    0900000000000000 000000000000d03f 0a00000000000000 0b00000000000000 0c00000000000000
    6052e6cf8b010000 050000003a000000 0500000015000000 6f72646572730000 0600000000000000
    0700000000000000
"""
# The same with caps.
GOLDEN_QUEUE_WITH_CAPS = """
    0000000016000000 0000000010000200 0068e5cf8b010000 0100000000000000 0200000000000000
    0300000000000000 0400000000000000 0500000000000000 0800000000000000 000000000000f83f
    0900000000000000 000000000000d03f 0a00000000000000 0b00000000000000 0c00000000000000
    6052e6cf8b010000 0d0000000e000000 0f00000000000000 050000003a000000 0500000015000000
    6f72646572730000 0600000000000000 0700000000000000
"""
# The same with limits of batches.
GOLDEN_QUEUE_WITH_BATCHES = """
    0000000018000000 0000000012000200 0068e5cf8b010000 0100000000000000 0200000000000000
    0300000000000000 0400000000000000 0500000000000000 0800000000000000 000000000000f83f
    0900000000000000 000000000000d03f 0a00000000000000 0b00000000000000 0c00000000000000
    6052e6cf8b010000 0d0000000e000000 0f00000000000000 9096980000000000 11840c2400000000
    050000003a000000 0500000015000000 6f72646572730000 0600000000000000 0700000000000000
"""
# The same with a cap by an attribute.
GOLDEN_QUEUE_WITH_CAP_BY = """
    000000001b000000 0000000013000300 0068e5cf8b010000 0100000000000000 0200000000000000
    0300000000000000 0400000000000000 0500000000000000 0800000000000000 000000000000f83f
    0900000000000000 000000000000d03f 0a00000000000000 0b00000000000000 0c00000000000000
    6052e6cf8b010000 0d0000000e000000 0f00000000000000 9096980000000000 11840c2400000000
    1200000000000000 090000003a000000 0d00000015000000 0500000022000000 6f72646572730000
    77686f0000000000 0600000000000000 0700000000000000
"""
# The same with a rate by an attribute.
GOLDEN_QUEUE_WITH_CAP_BY_RATE = """
    000000001c000000 0000000014000300 0068e5cf8b010000 0100000000000000 0200000000000000
    0300000000000000 0400000000000000 0500000000000000 0800000000000000 000000000000f83f
    0900000000000000 000000000000d03f 0a00000000000000 0b00000000000000 0c00000000000000
    6052e6cf8b010000 0d0000000e000000 0f00000000000000 9096980000000000 11840c2400000000
    1200000013000000 1400000000000000 090000003a000000 0d00000015000000 0500000022000000
    6f72646572730000 77686f0000000000 0600000000000000 0700000000000000
"""
# The same with an age of dead letters.
GOLDEN_QUEUE = """
    000000001d000000 0000000015000300 0068e5cf8b010000 0100000000000000 0200000000000000
    0300000000000000 0400000000000000 0500000000000000 0800000000000000 000000000000f83f
    0900000000000000 000000000000d03f 0a00000000000000 0b00000000000000 0c00000000000000
    6052e6cf8b010000 0d0000000e000000 0f00000000000000 9096980000000000 11840c2400000000
    1200000013000000 1400000000000000 1500000000000000 090000003a000000
    0d00000015000000 0500000022000000 6f72646572730000
    77686f0000000000 0600000000000000 0700000000000000
"""
GOLDEN_ATTRIBUTES = "0001 61 0000 0002 c3b6 0003 78797a"

ATTRIBUTES = {"a": "", "ö": "xyz"}
PACKED = bytes.fromhex(GOLDEN_ATTRIBUTES)
MARK = MarkFields(0x05060708, 0x0A0B, 0x0C0D, 9, 1)
SINGLE = plain_run(ID_1, 13)
RUN = make_run(ID_2, 0x0102, 3, 0x0200, 0x01020304, encode_mark(MARK))
LEFTOVER = Leftover(0x01020304, 0x05060708, 0x8005)
LEASE = (NOW_MS + 60_000, GOLDEN_HELD)
WITHOUT_BATCHES: dict[str, Any] = {"batches_max": BATCHES_MAX, "batch_keep_ms": BATCH_KEEP_MS}
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
        concurrency_max=13,
        rate_items=14,
        rate_ms=15,
        batches_max=16,
        batch_keep_ms=17,
        cap_by="who",
        cap_by_concurrency_max=18,
        cap_by_rate_items=19,
        cap_by_rate_ms=20,
        dead_age_ms=21,
    ),
    1_700_000_060_000,
)


def test_runs_have_their_golden_bytes() -> None:
    assert encode_mark(MARK) == GOLDEN_MARK
    assert decode_mark(GOLDEN_MARK) == MARK
    assert PLAIN_MARK == GOLDEN_PLAIN_MARK
    assert encode_run(RUN) == GOLDEN_RUN
    assert decode_run(ID_2, GOLDEN_RUN) == RUN
    assert encode_run(SINGLE) == GOLDEN_SINGLE
    assert decode_run(ID_1, GOLDEN_SINGLE) == SINGLE
    assert encode_held([SINGLE, RUN]) == GOLDEN_HELD
    assert decode_held(GOLDEN_HELD) == [SINGLE, RUN]
    assert encode_dead(NOW_MS, 2, RUN) == GOLDEN_DEAD
    assert decode_dead(ID_2, GOLDEN_DEAD) == (NOW_MS, 2, RUN)


def test_blocks_are_written_with_their_golden_bytes() -> None:
    plain = encode_block([b"hello", b"", b"abc"])
    detailed = encode_block([b"hello", b"a"], [b"key", b""], [b"", PACKED])

    assert plain == bytes.fromhex(GOLDEN_BLOCK)
    assert detailed == bytes.fromhex(GOLDEN_DETAILED_BLOCK)
    assert Block(plain).rewritten([0, 2]) == bytes.fromhex(GOLDEN_SPARSE_BLOCK)
    assert Block(detailed).rewritten([1]) == bytes.fromhex(GOLDEN_SPARSE_DETAILED_BLOCK)
    assert pack_attributes(ATTRIBUTES) == PACKED


def test_blocks_are_read_from_their_golden_bytes() -> None:
    detailed = Block(bytes.fromhex(GOLDEN_DETAILED_BLOCK))
    sparse = Block(bytes.fromhex(GOLDEN_SPARSE_BLOCK))
    sparse_detailed = Block(bytes.fromhex(GOLDEN_SPARSE_DETAILED_BLOCK))

    assert Block(bytes.fromhex(GOLDEN_BLOCK)).contents(0, 3) == [b"hello", b"", b"abc"]
    assert detailed.contents(0, 2) == [b"hello", b"a"]
    assert detailed.details(0, 2) == ([b"key", b""], [b"", PACKED])
    assert (sparse.contents(0, 1), sparse.contents(2, 1)) == ([b"hello"], [b"abc"])
    assert sparse_detailed.contents(1, 1) == [b"a"]
    assert sparse_detailed.details(1, 1) == ([b""], [PACKED])
    assert unpack_attributes(PACKED) == ATTRIBUTES


def test_leftover_has_its_golden_bytes() -> None:
    assert encode_leftover(LEFTOVER) == GOLDEN_LEFTOVER
    assert decode_leftover(GOLDEN_LEFTOVER) == LEFTOVER


def test_leases_and_queues_have_their_golden_bytes() -> None:
    assert encode_lease(*LEASE) == bytes.fromhex(GOLDEN_LEASE)
    assert decode_lease(bytes.fromhex(GOLDEN_LEASE)) == LEASE
    assert encode_queue(*RECORD) == bytes.fromhex(GOLDEN_QUEUE)
    assert decode_queue(bytes.fromhex(GOLDEN_QUEUE)) == RECORD
    rated = replace(RECORD[2], dead_age_ms=0)
    named = replace(rated, cap_by_rate_items=0, cap_by_rate_ms=0)
    plain = replace(named, cap_by="", cap_by_concurrency_max=0)
    bare = replace(plain, concurrency_max=0, rate_items=0, rate_ms=0, **WITHOUT_BATCHES)
    earlier = {
        GOLDEN_QUEUE_WITHOUT_CAPS: bare,
        GOLDEN_QUEUE_WITH_CAPS: replace(plain, **WITHOUT_BATCHES),
        GOLDEN_QUEUE_WITH_BATCHES: plain,
        GOLDEN_QUEUE_WITH_CAP_BY: named,
        GOLDEN_QUEUE_WITH_CAP_BY_RATE: rated,
    }
    for stored, settings in earlier.items():
        assert decode_queue(bytes.fromhex(stored)) == (*RECORD[:2], settings, RECORD[3])
