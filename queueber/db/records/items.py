"""Items, and the leases that hold them: `StoredItem` and `LeaseEntry` of `schema/storage.capnp`.

Building a Cap'n Proto message takes microseconds, and these are written and read for every item. A
message in one segment has a fixed layout, so it is encoded here from constants:

    segment table (8 bytes) | root pointer (8) | data words | pointers | what they point to

Decoding takes a fast path if the constants match, and the general reader if they do not, so
messages of any encoder or a later schema can be read.
"""

import struct
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple, cast

from queueber.db.records.keys import MARK_BYTES, HeldItem, Mark, new_mark
from queueber.ids import ItemId, LeaseId
from queueber.limits import ID_BYTES, PRIORITY_DEFAULT
from queueber.model import NewItems, Rows
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


# --- items ----------------------------------------------------------------------------------------

# An item's record has no data words, and one pointer, or three if the item has a key or attributes.
_ITEM_HEAD = struct.Struct("<II Q II")
_ITEM_ROOT = root_pointer(0, 1)
_ITEM_HEAD_BYTES = _ITEM_HEAD.size
_ITEM_LIST_LOW = 1  # a list pointer to the very next word

_DETAILED_HEAD = struct.Struct("<II Q QQQ")
_DETAILED_ROOT = root_pointer(0, 3)
_DETAILED_BYTES = _DETAILED_HEAD.size


def encode_item(contents: bytes) -> bytes:
    size = len(contents)
    return _item_head(size) + contents + padding(size)


@lru_cache(maxsize=4096)
def _item_head(size: int) -> bytes:
    # Items of a queue often have few sizes: a cached head costs a third of a new one.
    return _ITEM_HEAD.pack(0, 2 + words(size), _ITEM_ROOT, _ITEM_LIST_LOW, size << 3 | DATA_LIST)


def encode_items(contents: Sequence[bytes]) -> list[bytes]:
    """Many at once: faster if all have one size."""
    sizes = set(map(len, contents))
    if len(sizes) != 1:
        return [encode_item(each) for each in contents]
    size = sizes.pop()
    head, tail = _item_head(size), padding(size)
    if not tail:
        return [head + each for each in contents]
    return [head + each + tail for each in contents]


def encode_detailed_item(contents: bytes, key: bytes, attributes: bytes) -> bytes:
    """An item with a key or attributes, as `pack_attributes` made them."""
    size, key_size, attributes_size = len(contents), len(key), len(attributes)
    head = _detailed_head(size, key_size, attributes_size)
    parts = (contents, padding(size), key, padding(key_size), attributes, padding(attributes_size))
    return head + b"".join(parts)


@lru_cache(maxsize=1024)
def _detailed_head(size: int, key_size: int, attributes_size: int) -> bytes:
    return _DETAILED_HEAD.pack(
        0,
        4 + words(size) + words(key_size) + words(attributes_size),
        _DETAILED_ROOT,
        list_pointer(2, size),
        list_pointer(1 + words(size), key_size) if key_size else 0,
        list_pointer(words(size) + words(key_size), attributes_size) if attributes_size else 0,
    )


def decode_item(value: bytes) -> bytes:
    """The contents alone."""
    span = _contents_span(value[:_ITEM_HEAD_BYTES])
    if span is not None:
        return value[span]
    with storage.StoredItem.from_bytes(value) as item:
        return bytes(item.contents)


def decode_items(values: Sequence[bytes]) -> list[bytes]:
    """Many at once: faster if all have one layout."""
    heads = {value[:_ITEM_HEAD_BYTES] for value in values}
    if len(heads) == 1 and (span := _contents_span(heads.pop())) is not None:
        return [value[span] for value in values]
    return [decode_item(value) for value in values]


# Items of a queue often have one size, and then equal heads.
@lru_cache(maxsize=1024)
def _contents_span(head: bytes) -> slice | None:
    """Where the contents are in a record that was encoded here; its head is enough to tell."""
    if len(head) == _ITEM_HEAD_BYTES:
        _, _, root, low, high = _ITEM_HEAD.unpack(head)
        if root == _ITEM_ROOT and low == _ITEM_LIST_LOW and high & 7 == DATA_LIST:
            return slice(_ITEM_HEAD_BYTES, _ITEM_HEAD_BYTES + (high >> 3))
        if root == _DETAILED_ROOT and low & 3 == 1 and high & 7 == DATA_LIST:
            start = _ITEM_HEAD_BYTES + (low >> 2) * WORD
            return slice(start, start + (high >> 3))
    return None


def decode_details(value: bytes) -> tuple[bytes, bytes]:
    """Key and attributes, packed as they are stored."""
    if len(value) >= _DETAILED_BYTES:
        _, _, root, *pointers = _DETAILED_HEAD.unpack_from(value)
        size, key_size, attributes_size = (pointer >> 35 for pointer in pointers)
        # The fast path is for records of `encode_detailed_item` alone.
        if (
            root == _DETAILED_ROOT
            and _detailed_head(size, key_size, attributes_size) == value[:_DETAILED_BYTES]
        ):
            key_at = _DETAILED_BYTES + words(size) * WORD
            at = key_at + words(key_size) * WORD
            return value[key_at : key_at + key_size], value[at : at + attributes_size]
    with storage.StoredItem.from_bytes(value) as item:
        return bytes(item.key), bytes(item.attributes)


def pack_attributes(attributes: Mapping[str, str]) -> bytes:
    """Names and values in turn: 2 bytes of length, then UTF-8."""
    encoded = [text.encode() for pair in attributes.items() for text in pair]
    return b"".join([len(each).to_bytes(2) + each for each in encoded])


def unpack_attributes(packed: bytes) -> dict[str, str]:
    texts = []
    at = 0
    while at < len(packed):
        size = int.from_bytes(packed[at : at + 2])
        texts.append(packed[at + 2 : at + 2 + size].decode())
        at += 2 + size
    return dict(zip(texts[::2], texts[1::2], strict=True))


# --- new items ------------------------------------------------------------------------------------


class NewRecords(NamedTuple):
    """What an add and a bulk load write of new items: one of each for every item, in order."""

    sizes: list[int]
    """Bytes of contents, key and attributes."""
    marks: list[Mark]
    records: list[bytes]


def describe(items: NewItems | Rows, batch: int) -> NewRecords:
    """`batch` is the number of the batch of all of them; 0: none."""
    if items.priorities or items.keys or items.attributes:
        return _describe_each(items, batch)
    sizes = [len(each) for each in items.contents]
    marks = {
        size: new_mark(size, batch, PRIORITY_DEFAULT, has_details=False) for size in set(sizes)
    }
    return NewRecords(sizes, [marks[size] for size in sizes], encode_items(items.contents))


def _describe_each(items: NewItems | Rows, batch: int) -> NewRecords:
    count = len(items.contents)
    keys = [key.encode() for key in items.keys] or [b""] * count
    attributes = [pack_attributes(each) for each in items.attributes] or [b""] * count
    priorities = items.priorities or [PRIORITY_DEFAULT] * count
    described = NewRecords([], [], [])
    for contents, key, packed, priority in zip(
        items.contents, keys, attributes, priorities, strict=True
    ):
        has_details = bool(key or packed)
        size = len(contents) + len(key) + len(packed)
        described.sizes.append(size)
        described.marks.append(new_mark(size, batch, priority, has_details=has_details))
        described.records.append(
            encode_detailed_item(contents, key, packed) if has_details else encode_item(contents)
        )
    return described


# --- leases ---------------------------------------------------------------------------------------

LeaseOf = tuple[ItemId, LeaseId]
"""An item, and the lease that holds it."""

_HELD = struct.Struct(f"{ID_BYTES}s{MARK_BYTES}s")
HELD_BYTES = _HELD.size

# A lease's record has one data word and one pointer.
_LEASE_HEAD = struct.Struct("<II Q Q Q")
_LEASE_ROOT = root_pointer(1, 1)


def encode_lease(expires_at_ms: int, held: bytes) -> bytes:
    size = len(held)
    head = _LEASE_HEAD.pack(0, 3 + words(size), _LEASE_ROOT, expires_at_ms, list_pointer(0, size))
    return head + held + padding(size)


def decode_lease(value: bytes) -> tuple[int, bytes]:
    """The lease's expiry, and the items that it holds: `HELD_BYTES` for each."""
    start = _LEASE_HEAD.size
    if len(value) >= start:
        _, _, root, expires_at_ms, pointer = _LEASE_HEAD.unpack_from(value)
        if root == _LEASE_ROOT and pointer & 0x7_FFFF_FFFF == list_pointer(0, 0):
            return expires_at_ms, value[start : start + (pointer >> 35)]
    with storage.LeaseEntry.from_bytes(value) as lease:
        return lease.expiresAtMs, bytes(lease.held)


def split_held(held: bytes) -> list[HeldItem]:
    """The id and mark of each item that a lease holds."""
    if len(held) % HELD_BYTES == 0:
        return list(_HELD.iter_unpack(held))
    starts = range(0, len(held), HELD_BYTES)
    items = [(held[at : at + ID_BYTES], held[at + ID_BYTES : at + HELD_BYTES]) for at in starts]
    return cast("list[HeldItem]", items)


def is_held(held: bytes, item_id: bytes) -> bool:
    at = held.find(item_id)
    while at > 0 and at % HELD_BYTES:
        at = held.find(item_id, at + 1)  # the bytes were part of another item's mark
    return at >= 0
