"""Leases: `LeaseEntry` of `schema/storage.capnp`, and how records of that schema are encoded.

Building a Cap'n Proto message takes microseconds, and these are written and read by every poll. A
message in one segment has a fixed layout, so it is encoded here from constants:

    segment table (8 bytes) | root pointer (8) | data words | pointers | what they point to

Decoding takes a fast path if the constants match, and the general reader if they do not, so
messages of any encoder or a later schema can be read.
"""

import struct

from queueber.schema import storage

WORD = 8
DATA_LIST = 2
"""Element size code of a list of bytes."""

_PADDING = [bytes(-n % WORD) for n in range(WORD)]


def root_pointer(data_words: int, pointers: int) -> int:
    return data_words << 32 | pointers << 48


def list_pointer(offset_words: int, byte_count: int) -> int:
    """A pointer to a list of bytes that begins `offset_words` after it."""
    return offset_words << 2 | 1 | (byte_count << 3 | DATA_LIST) << 32


def words(byte_count: int) -> int:
    return (byte_count + WORD - 1) // WORD


def padding(byte_count: int) -> bytes:
    """The zeros that fill the last word."""
    return _PADDING[byte_count & 7]


# A lease's record has one data word and one pointer.
_LEASE_HEAD = struct.Struct("<II Q Q Q")
_LEASE_ROOT = root_pointer(1, 1)


def encode_lease(expires_at_ms: int, held: bytes) -> bytes:
    size = len(held)
    head = _LEASE_HEAD.pack(0, 3 + words(size), _LEASE_ROOT, expires_at_ms, list_pointer(0, size))
    return head + held + padding(size)


def decode_lease(value: bytes) -> tuple[int, bytes]:
    """The lease's expiry, and the runs that it holds, as `runs.decode_held` reads them."""
    start = _LEASE_HEAD.size
    if len(value) >= start:
        _, _, root, expires_at_ms, pointer = _LEASE_HEAD.unpack_from(value)
        if root == _LEASE_ROOT and pointer & 0x7_FFFF_FFFF == list_pointer(0, 0):
            return expires_at_ms, value[start : start + (pointer >> 35)]
    with storage.LeaseEntry.from_bytes(value) as lease:
        return lease.expiresAtMs, bytes(lease.held)
