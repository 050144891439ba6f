"""Items: contents, key and attributes, as `StoredItem` of `schema/storage.capnp`.

Building a Cap'n Proto message takes microseconds, and these are written and read for every item. A
message in one segment has a fixed layout, so it is encoded here from constants (see
`capnp_layout.py`). Decoding takes a fast path if the constants match, and the general reader if
they do not, so messages of any encoder or a later schema can be read.
"""

import struct
from collections.abc import Mapping, Sequence
from functools import lru_cache

from queueber.db.records.capnp_layout import (
    DATA_LIST,
    WORD,
    list_pointer,
    padding,
    root_pointer,
    words,
)
from queueber.schema import storage

# A record has no data words, and one pointer, or three if the item has a key or attributes.
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
