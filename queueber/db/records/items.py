"""Value codecs for items, leases and queues: the records of `schema/storage.capnp`.

Building a Cap'n Proto message costs microseconds, and these are written and read for every item. A
message in one segment has a fixed shape, so it is put together here from constants (see
`capnp_layout.py`). Reading takes the short way when the constants match and the general reader when
they do not, so messages made by any builder, or by a later schema, are understood.
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
from queueber.db.records.marks import MARK_BYTES
from queueber.limits import ID_BYTES
from queueber.model import QueueSettings
from queueber.schema import storage

# --- StoredItem: no data words; one pointer, or three when the item has details ------------------

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
    # Items of a queue are often of few sizes: found, a head costs a third of what making it does.
    return _ITEM_HEAD.pack(0, 2 + words(size), _ITEM_ROOT, _ITEM_LIST_LOW, size << 3 | DATA_LIST)


def encode_items(contents: Sequence[bytes]) -> list[bytes]:
    """Many at once: a call less for each when all are of one size."""
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
    """Many at once: a call less for each when all are of one shape."""
    heads = {value[:_ITEM_HEAD_BYTES] for value in values}
    if len(heads) == 1 and (span := _contents_span(heads.pop())) is not None:
        return [value[span] for value in values]
    return [decode_item(value) for value in values]


# Items of a queue are often of one size, and then their heads are the same.
@lru_cache(maxsize=1024)
def _contents_span(head: bytes) -> slice | None:
    """Where the contents are in a record of ours, which its head alone says."""
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
        # The short way is for what `encode_detailed_item` made, and for that alone.
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


# --- LeaseEntry: one data word, one pointer -------------------------------------------------------

_HELD = struct.Struct(f"{ID_BYTES}s{MARK_BYTES}s")
HELD_BYTES = _HELD.size

_LEASE_HEAD = struct.Struct("<II Q Q Q")
_LEASE_ROOT = root_pointer(1, 1)


def encode_lease(expires_at_ms: int, held: bytes) -> bytes:
    size = len(held)
    head = _LEASE_HEAD.pack(0, 3 + words(size), _LEASE_ROOT, expires_at_ms, list_pointer(0, size))
    return head + held + padding(size)


def decode_lease(value: bytes) -> tuple[int, bytes]:
    """The lease's expiry, and what it holds: `HELD_BYTES` an item."""
    start = _LEASE_HEAD.size
    if len(value) >= start:
        _, _, root, expires_at_ms, pointer = _LEASE_HEAD.unpack_from(value)
        if root == _LEASE_ROOT and pointer & 0x7_FFFF_FFFF == list_pointer(0, 0):
            return expires_at_ms, value[start : start + (pointer >> 35)]
    with storage.LeaseEntry.from_bytes(value) as lease:
        return lease.expiresAtMs, bytes(lease.held)


def split_held(held: bytes) -> list[tuple[bytes, bytes]]:
    """The id and mark of each item that a lease holds."""
    if len(held) % HELD_BYTES == 0:
        return list(_HELD.iter_unpack(held))
    return [
        (held[at : at + ID_BYTES], held[at + ID_BYTES : at + HELD_BYTES])
        for at in range(0, len(held), HELD_BYTES)
    ]


def is_held(held: bytes, item_id: bytes) -> bool:
    """Whether the item is among those that a lease holds."""
    at = held.find(item_id)
    while at > 0 and at % HELD_BYTES:
        at = held.find(item_id, at + 1)  # it was part of another's mark
    return at >= 0


# --- QueueRecord ----------------------------------------------------------------------------------


def encode_queue(
    name: str, created_at_ms: int, settings: QueueSettings, paused_until_ms: int = 0
) -> bytes:
    s = settings
    message = storage.QueueRecord.new_message(
        name=name,
        createdAtMs=created_at_ms,
        itemsMax=s.items_max,
        bytesMax=s.bytes_max,
        itemBytesMax=s.item_bytes_max,
        leaseMs=s.lease_ms,
        attemptsMax=s.attempts_max,
        backoffMs=list(s.backoff_ms),
        backoffBaseMs=s.backoff_base_ms,
        backoffFactor=s.backoff_factor,
        backoffCapMs=s.backoff_cap_ms,
        backoffJitter=s.backoff_jitter,
        dedupWindowMs=s.dedup_window_ms,
        resultAgeMs=s.result_age_ms,
        resultBytesMax=s.result_bytes_max,
        noIsolation=not s.isolation,
        pausedUntilMs=paused_until_ms,
    )
    encoded: bytes = message.to_bytes()
    return encoded


def decode_queue(value: bytes) -> tuple[str, int, QueueSettings, int]:
    """Name, created-at, settings, and until when it is paused."""
    with storage.QueueRecord.from_bytes(value) as r:
        settings = QueueSettings(
            items_max=r.itemsMax,
            bytes_max=r.bytesMax,
            item_bytes_max=r.itemBytesMax,
            lease_ms=r.leaseMs,
            attempts_max=r.attemptsMax,
            backoff_ms=tuple(r.backoffMs),
            backoff_base_ms=r.backoffBaseMs,
            backoff_factor=r.backoffFactor,
            backoff_cap_ms=r.backoffCapMs,
            backoff_jitter=r.backoffJitter,
            dedup_window_ms=r.dedupWindowMs,
            result_age_ms=r.resultAgeMs,
            result_bytes_max=r.resultBytesMax,
            isolation=not r.noIsolation,
        )
        return str(r.name), r.createdAtMs, settings, r.pausedUntilMs
