"""Keys and marks: what the entries of the indexes are made of.

Keys are order-preserving and of fixed width. `prefix` is a queue's number as 4 bytes. `due` is a
time and an id: 24 bytes that sort by time, then by id. A key of a time index is prefix and due. In
the index of ready items a byte for the level stands between them: level 0 is priority 9, so that
the highest priority sorts first; level 10 has the quarantined items of priority 9, and so on.

The mark is 14 bytes about an item. Every entry that says which state an item is in has the mark in
its value, so a change of state reads nothing else of the item. Most items have a plain mark: no
batch, no failure, priority 5, no details.

    size 4 | batch 4 | attempts 2 | group max 2 | priority 1 | flags 1
"""

import struct
from hashlib import blake2b
from typing import NamedTuple, NewType

from queueber.ids import ItemId, QueueId
from queueber.limits import ID_BYTES, LEVELS, PRIORITY_DEFAULT, PRIORITY_MAX

Due = NewType("Due", bytes)
"""A time and an id, as in the key of a time index."""

PREFIX_BYTES = 4
TIME_BYTES = 8
DUE_BYTES = 24
LEVEL_BYTES = 1
DIGEST_BYTES = 16
ID_BLOCK_BYTES = ID_BYTES - 1

NEVER_MS = (1 << 64) - 1
"""Later than any time: the due time when nothing is due."""


def queue_prefix(queue_id: int) -> bytes:
    return queue_id.to_bytes(PREFIX_BYTES)


def split_queue_prefix(prefix: bytes) -> QueueId:
    return QueueId(int.from_bytes(prefix))


def prefix_end(prefix: bytes) -> bytes:
    """The first key after every key of the queue."""
    return (int.from_bytes(prefix) + 1).to_bytes(PREFIX_BYTES)


def time_part(at_ms: int) -> bytes:
    return at_ms.to_bytes(TIME_BYTES)


def due_part(at_ms: int, any_id: bytes) -> Due:
    # Called for each item: calling `Due` would add half to what this costs.
    return at_ms.to_bytes(TIME_BYTES) + any_id  # type: ignore[return-value]


def split_due_part(due: bytes) -> tuple[int, bytes]:
    return int.from_bytes(due[:TIME_BYTES]), due[TIME_BYTES:]


def due_upper_bound(prefix: bytes, now_ms: int) -> bytes:
    """The first key of a time index that is not due at `now_ms`."""
    return prefix + (now_ms + 1).to_bytes(TIME_BYTES)


def level_part(level: int) -> bytes:
    return _LEVEL_PARTS[level]


_LEVEL_PARTS = [bytes([level]) for level in range(LEVELS)]


def is_where_its_id_says(due: bytes) -> bool:
    """Whether the time is the one in the id, so that the id alone is enough to find the entry."""
    return due[2:8] == due[8:14]


def id_block(item_id: bytes) -> bytes:
    """The block of an id: all but its last byte, which 256 ids have in common."""
    return item_id[:ID_BLOCK_BYTES]


def text_digest(text: str, kind: bytes = b"") -> bytes:
    """16 bytes for a text of any length, for keys of the store that users name.

    Texts of different kinds have different digests: the kinds may be in one family.
    """
    return blake2b(text.encode(), digest_size=DIGEST_BYTES, person=kind).digest()


# --- marks ----------------------------------------------------------------------------------------

Mark = NewType("Mark", bytes)

Entry = tuple[Due, Mark]
"""Of a ready or a delayed item: when it is visible, its id and its mark."""
HeldItem = tuple[ItemId, Mark]
"""An item that a lease holds, or that is dead."""

_MARK = struct.Struct(">IIHHBB")
_HAS_DETAILS = 1

MARK_BYTES = _MARK.size
SIZE_BYTES = 4
_PRIORITY_AT = 12
_GROUP_CEILING = (1 << 16) - 1
MARK_ATTEMPTS_MAX = (1 << 16) - 1
"""A mark counts no further; without a limit of attempts an item may fail more often."""


class MarkFields(NamedTuple):
    size: int
    """Bytes of contents, key and attributes."""
    batch: int = 0
    """The number of its batch; 0: none."""
    attempts: int = 0
    """How often it has failed."""
    group_max: int = 0
    """A lease with this item holds at most so many items; 0: no limit."""
    priority: int = PRIORITY_DEFAULT
    flags: int = 0

    @property
    def has_details(self) -> bool:
        """Whether the item has a key or attributes."""
        return bool(self.flags & _HAS_DETAILS)


PLAIN_TAIL = _MARK.pack(*MarkFields(0))[SIZE_BYTES:]
"""What follows the size in a plain mark."""
PLAIN_TAILS = {PLAIN_TAIL}
"""The set of the tails of many marks, if all of them are plain."""


def encode_mark(fields: MarkFields) -> Mark:
    return Mark(_MARK.pack(*fields))


def new_mark(size: int, batch: int, priority: int, *, has_details: bool) -> Mark:
    flags = _HAS_DETAILS if has_details else 0
    return _MARK.pack(size, batch, 0, 0, priority, flags)  # type: ignore[return-value]  # see due_part


def decode_mark(mark: bytes) -> MarkFields:
    return MarkFields(*_MARK.unpack(mark))


def is_plain(mark: bytes) -> bool:
    return mark[SIZE_BYTES:] == PLAIN_TAIL


def mark_size(mark: bytes) -> int:
    return int.from_bytes(mark[:SIZE_BYTES])


# One field each, for hot paths: `decode_mark` costs several times as much.


def mark_batch(mark: bytes) -> int:
    return int.from_bytes(mark[4:8])


def mark_attempts(mark: bytes) -> int:
    return int.from_bytes(mark[8:10])


def mark_group_max(mark: bytes) -> int:
    return int.from_bytes(mark[10:12])


def mark_has_details(mark: bytes) -> bool:
    return bool(mark[13] & _HAS_DETAILS)


def mark_level(mark: bytes) -> int:
    """Its level in the index of ready items: 0 is priority 9, 10 are its quarantined items."""
    level = PRIORITY_MAX - mark[_PRIORITY_AT]
    return level + PRIORITY_MAX + 1 if mark_group_max(mark) else level


def with_group_max(mark: bytes, group_max: int) -> Mark:
    """The mark with another limit; one that does not fit is stored as the largest that does."""
    return encode_mark(decode_mark(mark)._replace(group_max=min(group_max, _GROUP_CEILING)))


# --- dead letters, and the failures of an item ----------------------------------------------------


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
