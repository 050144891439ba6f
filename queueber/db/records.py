"""Value codecs for the records of `schema/storage.capnp`.

Building a Cap'n Proto message costs microseconds, and these are written and read for every item. A
message in one segment has a fixed shape, so it is put together here from constants:

    segment table (8 bytes) | root pointer (8) | data words | pointers | what they point to

Reading takes the short way when the constants match and the general reader when they do not, so
messages made by any builder, or by a later schema, are understood.
"""

import struct
from dataclasses import astuple, dataclass

from queueber.db.keys import LOWEST_DUE, NEVER_MS
from queueber.limits import ID_BYTES
from queueber.model import QueueSettings
from queueber.schema import storage

_WORD = 8
_DATA_LIST = 2  # element size code of a list of bytes


def _root_pointer(data_words: int, pointers: int) -> int:
    return data_words << 32 | pointers << 48


def _list_pointer(offset_words: int, byte_count: int) -> int:
    return offset_words << 2 | 1 | (byte_count << 3 | _DATA_LIST) << 32


def _words(byte_count: int) -> int:
    return (byte_count + _WORD - 1) // _WORD


_PADDING = [bytes(-n % _WORD) for n in range(_WORD)]

# --- StoredItem: no data words, one pointer -------------------------------------------------------

_ITEM_HEAD = struct.Struct("<II Q II")
_ITEM_ROOT = _root_pointer(0, 1)
_ITEM_HEAD_BYTES = _ITEM_HEAD.size
_ITEM_LIST_LOW = 1  # a list pointer to the very next word


def encode_item(contents: bytes) -> bytes:
    size = len(contents)
    head = _ITEM_HEAD.pack(
        0, 2 + (size + 7 >> 3), _ITEM_ROOT, _ITEM_LIST_LOW, size << 3 | _DATA_LIST
    )
    return head + contents + _PADDING[size & 7]


def decode_item(value: bytes) -> bytes:
    if len(value) >= _ITEM_HEAD_BYTES:
        _, _, root, low, high = _ITEM_HEAD.unpack_from(value)
        if root == _ITEM_ROOT and low == _ITEM_LIST_LOW and high & 7 == _DATA_LIST:
            return value[_ITEM_HEAD_BYTES : _ITEM_HEAD_BYTES + (high >> 3)]
    with storage.StoredItem.from_bytes(value) as item:
        return bytes(item.contents)


# --- LeaseEntry: one data word, one pointer -------------------------------------------------------

HELD_BYTES = ID_BYTES + 4

_LEASE_HEAD = struct.Struct("<II Q Q Q")
_LEASE_ROOT = _root_pointer(1, 1)


def encode_lease(expires_at_ms: int, held: bytes) -> bytes:
    size = len(held)
    head = _LEASE_HEAD.pack(0, 3 + _words(size), _LEASE_ROOT, expires_at_ms, _list_pointer(0, size))
    return head + held + _PADDING[size & 7]


def decode_lease(value: bytes) -> tuple[int, bytes]:
    """The lease's expiry, and what it holds: `HELD_BYTES` an item."""
    start = _LEASE_HEAD.size
    if len(value) >= start:
        _, _, root, expires_at_ms, pointer = _LEASE_HEAD.unpack_from(value)
        if root == _LEASE_ROOT and pointer & 0x7_FFFF_FFFF == _list_pointer(0, 0):
            return expires_at_ms, value[start : start + (pointer >> 35)]
    with storage.LeaseEntry.from_bytes(value) as lease:
        return lease.expiresAtMs, bytes(lease.held)


def split_held(held: bytes) -> list[tuple[bytes, int]]:
    """The id and size of each item that a lease holds."""
    return [
        (held[at : at + ID_BYTES], int.from_bytes(held[at + ID_BYTES : at + HELD_BYTES]))
        for at in range(0, len(held), HELD_BYTES)
    ]


# --- sizes and in-progress entries: plain bytes ---------------------------------------------------


def encode_size(size: int) -> bytes:
    return size.to_bytes(4)


def decode_size(value: bytes) -> int:
    return int.from_bytes(value)


def encode_in_progress(lease_id: bytes, size: int) -> bytes:
    return lease_id + size.to_bytes(4)


def decode_in_progress(value: bytes) -> tuple[bytes, int]:
    return value[:ID_BYTES], int.from_bytes(value[ID_BYTES:])


# --- QueueCounters: twelve data words, two pointers -----------------------------------------------


@dataclass(slots=True)
class Counters:
    """A queue in numbers. Field order is that of the stored struct."""

    ready: int = 0
    delayed: int = 0
    in_progress: int = 0
    leases: int = 0
    contents_bytes: int = 0
    added_total: int = 0
    polled_total: int = 0
    removed_total: int = 0
    expired_total: int = 0
    extended_total: int = 0
    lease_due_ms: int = NEVER_MS
    delayed_due_ms: int = NEVER_MS
    ready_low: bytes = LOWEST_DUE
    last_id: bytes = bytes(ID_BYTES)

    def copy(self) -> "Counters":
        return Counters(
            self.ready,
            self.delayed,
            self.in_progress,
            self.leases,
            self.contents_bytes,
            self.added_total,
            self.polled_total,
            self.removed_total,
            self.expired_total,
            self.extended_total,
            self.lease_due_ms,
            self.delayed_due_ms,
            self.ready_low,
            self.last_id,
        )


_COUNTERS = struct.Struct("<II Q 12Q QQ 24s 16s")
_COUNTERS_ROOT = _root_pointer(12, 2)
_COUNTERS_WORDS = _COUNTERS.size // _WORD - 1
_LOW_POINTER = _list_pointer(1, 24)
_LAST_ID_POINTER = _list_pointer(3, 16)


def encode_counters(counters: Counters) -> bytes:
    c = counters
    return _COUNTERS.pack(
        0,
        _COUNTERS_WORDS,
        _COUNTERS_ROOT,
        c.ready,
        c.delayed,
        c.in_progress,
        c.leases,
        c.contents_bytes,
        c.added_total,
        c.polled_total,
        c.removed_total,
        c.expired_total,
        c.extended_total,
        c.lease_due_ms,
        c.delayed_due_ms,
        _LOW_POINTER,
        _LAST_ID_POINTER,
        c.ready_low,
        c.last_id,
    )


def decode_counters(value: bytes) -> Counters:
    with storage.QueueCounters.from_bytes(value) as c:
        return Counters(
            c.ready,
            c.delayed,
            c.inProgress,
            c.leases,
            c.contentsBytes,
            c.addedTotal,
            c.polledTotal,
            c.removedTotal,
            c.expiredTotal,
            c.extendedTotal,
            c.leaseDueMs,
            c.delayedDueMs,
            bytes(c.readyLow),
            bytes(c.lastId),
        )


# --- QueueRecord ----------------------------------------------------------------------------------


def encode_queue(name: str, created_at_ms: int, settings: QueueSettings) -> bytes:
    items_max, bytes_max, item_bytes_max = astuple(settings)
    message = storage.QueueRecord.new_message(
        name=name,
        createdAtMs=created_at_ms,
        itemsMax=items_max,
        bytesMax=bytes_max,
        itemBytesMax=item_bytes_max,
    )
    encoded: bytes = message.to_bytes()
    return encoded


def decode_queue(value: bytes) -> tuple[str, int, QueueSettings]:
    with storage.QueueRecord.from_bytes(value) as record:
        settings = QueueSettings(record.itemsMax, record.bytesMax, record.itemBytesMax)
        return str(record.name), record.createdAtMs, settings
