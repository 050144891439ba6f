"""The mark: 14 bytes about an item that go with it from state to state.

Every entry that says which state an item is in has the mark as its value, so a change of state
reads nothing else of the item. Most items have a plain mark: no batch, no failure, priority 5, no
details.

    size 4 | batch 4 | attempts 2 | group max 2 | priority 1 | flags 1
"""

import struct
from typing import NamedTuple, NewType

from queueber.db.records.keys import Due
from queueber.ids import ItemId
from queueber.limits import PRIORITY_DEFAULT, PRIORITY_MAX

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


def plain_mark(size: int) -> Mark:
    return Mark(size.to_bytes(SIZE_BYTES) + PLAIN_TAIL)


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
