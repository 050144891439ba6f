"""How format 4 stored what format 5 stores otherwise. Frozen: only reads, and never changes.

An item was an entry of its own in every family:

    items              queue 4, id 16                   StoredItem: contents, key, attributes
    visibility_index   queue 4, level 1, time 8, id 16  mark
    delayed            queue 4, time 8, id 16           mark
    places             queue 4, id 16                   visible-at 8
    dead               queue 4, id 16                   died-at 8, reason 1, mark
    leases             queue 4, lease 16                LeaseEntry: expiry, id and mark of each item
    holders            queue 4, id without its last byte 15, lease 16

A mark had 14 bytes: size 4, batch 4, attempts 2, group max 2, priority 1, flags 1. The digest of
ids was the sum of their hashes (BLAKE2b, 16 bytes) modulo 2^128.

Both structs are Cap'n Proto messages in one segment, with 8 bytes a word: segment table, root
pointer, data words, pointers, and then the bytes that these point to. Pointers that are not set may
be left out at the end. `StoredItem` has no data word and a pointer for each of its three fields,
`LeaseEntry` one data word and one pointer.
"""

import struct
from collections.abc import Iterable
from hashlib import blake2b
from typing import NamedTuple

DIGEST_MODULUS = 1 << 128
_DIGEST_BYTES = 16
_ID_BYTES = 16
_TIME_BYTES = 8
_WORD = 8
_BYTES_LIST = 2
"""Cap'n Proto's code for a list of bytes."""

MARK_BYTES = 14
_HELD_BYTES = _ID_BYTES + MARK_BYTES


class Item(NamedTuple):
    contents: bytes
    key: bytes
    attributes: bytes

    @property
    def size(self) -> int:
        return len(self.contents) + len(self.key) + len(self.attributes)


def read_item(value: bytes) -> Item:
    """Raises `ValueError` if the value is no item."""
    _, lists = _read_message(value)
    return Item(*[*lists, b"", b"", b""][:3])


def read_lease(value: bytes) -> tuple[int, list[tuple[bytes, bytes]]]:
    """The lease's expiry, and id and mark of each item that it holds; raises `ValueError`."""
    data, lists = _read_message(value)
    held = lists[0] if lists else b""
    if len(held) % _HELD_BYTES:
        raise ValueError(f"a lease holds {len(held)} bytes, which are not whole items")
    starts = range(0, len(held), _HELD_BYTES)
    items = [(held[at : at + _ID_BYTES], held[at + _ID_BYTES : at + _HELD_BYTES]) for at in starts]
    return data[0] if data else 0, items


def read_dead(value: bytes) -> tuple[int, int, bytes]:
    """Died-at, reason, and mark."""
    return int.from_bytes(value[:_TIME_BYTES]), value[_TIME_BYTES], value[_TIME_BYTES + 1 :]


def mark_size(mark: bytes) -> int:
    """Bytes of contents, key and attributes."""
    return int.from_bytes(mark[:4])


def ids_digest(ids: Iterable[bytes]) -> int:
    hashes = [blake2b(each, digest_size=_DIGEST_BYTES).digest() for each in ids]
    return sum([int.from_bytes(each) for each in hashes]) % DIGEST_MODULUS


def _read_message(value: bytes) -> tuple[tuple[int, ...], list[bytes]]:
    """The data words of a message, and the bytes of its pointers."""
    try:
        segments, words, root = struct.unpack_from("<IIQ", value)
        data_words, pointers = root >> 32 & 0xFFFF, root >> 48
        data = struct.unpack_from(f"<{data_words}Q", value, 2 * _WORD)
        start = (2 + data_words) * _WORD
        listed = struct.unpack_from(f"<{pointers}Q", value, start)
    except struct.error as error:
        raise ValueError(f"a record has only {len(value)} bytes") from error
    if segments or root & 0xFFFF_FFFF or len(value) != (1 + words) * _WORD:
        raise ValueError("a record is not as format 4 wrote it")
    return data, [_read_bytes(value, start + n * _WORD, each) for n, each in enumerate(listed)]


def _read_bytes(value: bytes, at: int, pointer: int) -> bytes:
    """What the pointer, which is at that position, points to."""
    if not pointer:
        return b""
    size = pointer >> 35
    start = at + _WORD + (pointer >> 2 & 0x3FFF_FFFF) * _WORD
    is_list = pointer & 3 == 1 and pointer >> 32 & 7 == _BYTES_LIST
    if not is_list or start + size > len(value):
        raise ValueError("a record is not as format 4 wrote it")
    return value[start : start + size]
