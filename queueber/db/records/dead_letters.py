"""Dead letters (died-at, reason, mark), and an item's failures (count, times, last error)."""

import struct

from queueber.db.records.keys import TIME_BYTES
from queueber.db.records.marks import Mark


def encode_dead(died_at_ms: int, reason: int, mark: bytes) -> bytes:
    return died_at_ms.to_bytes(TIME_BYTES) + bytes([reason]) + mark


def decode_dead(value: bytes) -> tuple[int, int, Mark]:
    """Died-at, reason, mark."""
    return int.from_bytes(value[:TIME_BYTES]), value[TIME_BYTES], Mark(value[TIME_BYTES + 1 :])


def encode_attempts(times_ms: list[int], last_error: str) -> bytes:
    return struct.pack(f">H{len(times_ms)}Q", len(times_ms), *times_ms) + last_error.encode()


def decode_attempts(value: bytes) -> tuple[list[int], str]:
    """The times of an item's failures, and its last error."""
    count = int.from_bytes(value[:2])
    end = 2 + count * TIME_BYTES
    return list(struct.unpack(f">{count}Q", value[2:end])), value[end:].decode()
