"""Keys: what the indexes are sorted by.

Keys are order-preserving and of fixed width. `prefix` is a queue's number as 4 bytes. `due` is a
time and an id: 24 bytes that sort by time, then by id. A key of a time index is prefix and due. In
the index of ready items a byte for the level stands between them: level 0 is priority 9, so that
the highest priority sorts first; level 10 has the quarantined items of priority 9, and so on.

An entry about a run of items has the id of the last one in its key. So one seek forward finds the
run of any item, and the key stays when items leave at the front.
"""

from hashlib import blake2b
from typing import NewType

from queueber.ids import QueueId
from queueber.limits import BLOCK_ITEMS_MAX, LEVELS

Due = NewType("Due", bytes)
"""A time and an id, as in the key of a time index."""

PREFIX_BYTES = 4
TIME_BYTES = 8
DUE_BYTES = 24
LEVEL_BYTES = 1
DIGEST_BYTES = 16

_LOW_HALF_MAX = (1 << 64) - 1

NEVER_MS = (1 << 64) - 1
"""Later than any time: the due time when nothing is due."""
AWAITING_MS = 253_402_300_799_999
"""The end of the year 9999: until then an item is delayed that waits for others. Programs read it
as a time."""


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


def last_id_end(item_id: bytes) -> bytes:
    """The first id that is too high to be the last one of a run or block that has the item."""
    number = min(int.from_bytes(item_id[8:]) + BLOCK_ITEMS_MAX, _LOW_HALF_MAX)
    return item_id[:8] + number.to_bytes(8)


def text_digest(text: str, kind: bytes = b"") -> bytes:
    """16 bytes for a text of any length, for keys of the store that users name.

    Texts of different kinds have different digests: the kinds may be in one family.
    """
    return blake2b(text.encode(), digest_size=DIGEST_BYTES, person=kind).digest()
