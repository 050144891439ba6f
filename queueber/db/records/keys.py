"""Key codecs: order-preserving, fixed width, in pairs.

`prefix` is a queue's number as 4 bytes. `due` is a time and an id: 24 bytes that sort by time, then
by id. A key of a time index is prefix and due. In the index of ready items a byte for the level
stands between them: level 0 is priority 9, so that the highest priority sorts first; level 10 has
the quarantined items of priority 9, and so on.
"""

from hashlib import blake2b
from typing import NewType

from queueber.ids import QueueId
from queueber.limits import ID_BYTES, LEVELS

Due = NewType("Due", bytes)
"""A time and an id, as in the key of a time index."""

PREFIX_BYTES = 4
TIME_BYTES = 8
DUE_BYTES = 24
LEVEL_BYTES = 1
DIGEST_BYTES = 16
ID_BLOCK_BYTES = ID_BYTES - 1

LOWEST_DUE = Due(bytes(DUE_BYTES))

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
