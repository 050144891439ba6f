"""Leases: expiry and items, as `LeaseEntry` of `schema/storage.capnp`; encoded as in `items.py`."""

import struct
from typing import cast

from queueber.db.records.capnp_layout import list_pointer, padding, root_pointer, words
from queueber.db.records.marks import MARK_BYTES, HeldItem
from queueber.ids import ItemId, LeaseId
from queueber.limits import ID_BYTES
from queueber.schema import storage

LeaseOf = tuple[ItemId, LeaseId]
"""An item, and the lease that holds it."""

_HELD = struct.Struct(f"{ID_BYTES}s{MARK_BYTES}s")
HELD_BYTES = _HELD.size

# A record has one data word and one pointer.
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
    """Whether a lease holds the item."""
    at = held.find(item_id)
    while at > 0 and at % HELD_BYTES:
        at = held.find(item_id, at + 1)  # the bytes were part of another item's mark
    return at >= 0
