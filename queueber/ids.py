"""Ids (RFC 9562): UUIDv7 made in bulk, and ranges of UUIDv8 that contain an item's origin.

    48 bits  milliseconds since the epoch
     4 bits  version 7                                version 8
    12 bits  random, new for each millisecond         ┐ the number of the range, which starts at a
     2 bits  variant                                  │ random value in the lower half
    62 bits  a counter that starts at a random        ┘ (12 bits, and 6 after the variant), then
             value in the lower half of its range       24 bits partition, 32 bits row

Within a millisecond, and when the clock steps back, counter and number continue from the last id
instead of starting at a new value. So the ids of one source always rise, and a batch of them is
written in key order. Ids of version 8 follow all those of version 7 of their millisecond.
"""

from random import Random
from struct import Struct
from typing import NewType, cast

from queueber.limits import ID_BYTES, PARTITIONS_MAX, ROWS_MAX

ItemId = NewType("ItemId", bytes)
"""16 bytes. An id that a caller sends is plain bytes until the store is known to have the item."""
LeaseId = NewType("LeaseId", bytes)
"""16 bytes."""
QueueId = NewType("QueueId", int)
"""The number of a queue, which is never used again for another queue."""

_COUNTER_BITS = 62
_COUNTER_LIMIT = 1 << _COUNTER_BITS
_VARIANT = 0b10 << _COUNTER_BITS
_STEP_MAX = 1 << 16

_RANGE_BITS = 18
_RANGE_LIMIT = 1 << _RANGE_BITS
ID_HEAD_BYTES = 9
"""Number of first bytes that all ids of a range have in common."""
PARTITION_BYTES = 3
ROW_BYTES = 4
_RANGE_END = b"\xff" * (PARTITION_BYTES + ROW_BYTES)


class IdSource:
    """Makes ids; always the same ones for the same `Random` and times."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._now_ms = -1
        self._head = bytes(8)
        self._counter = 0
        self._range = -1
        """The number of the last range, if no other id was made after it; else -1."""

    def continue_after(self, last_id: bytes) -> None:
        """Make every id from now on greater than `last_id`."""
        if last_id <= self._last_id():
            return
        self._now_ms = made_at_ms(last_id)
        if is_from_range(last_id):
            self._range = _range_number(last_id)
        else:
            self._range = -1
            self._head = last_id[:8]
            self._counter = int.from_bytes(last_id[8:]) - _VARIANT

    def _last_id(self) -> bytes:
        if self._range >= 0:
            return _range_head(self._now_ms, self._range) + _RANGE_END
        return self._head + (_VARIANT + self._counter).to_bytes(8)

    def mint(self, count: int, now_ms: int) -> list[ItemId]:
        """The next `count` ids, in order, for items or leases."""
        return ids_up_to(self.mint_last(count, now_ms), count)

    def mint_last(self, count: int, now_ms: int) -> ItemId:
        """The last of the next `count` ids, each of which is one more than the one before."""
        if now_ms > self._now_ms:
            self._start(now_ms)
        elif self._range >= 0 or self._counter + count + _STEP_MAX >= _COUNTER_LIMIT:
            # The counter overflows only after 2^61 ids in one millisecond.
            self._start(self._now_ms + 1)
        # A random step, so that adding one to an id does not give the id of the next call.
        first = self._counter + 1 + self._random.getrandbits(15)
        self._counter = first + count
        return ItemId(self._head + (_VARIANT + first + count - 1).to_bytes(8))

    def _start(self, now_ms: int) -> None:
        self._now_ms = now_ms
        self._range = -1
        self._head = ((now_ms << 16) | 0x7000 | self._random.getrandbits(12)).to_bytes(8)
        self._counter = self._random.getrandbits(_COUNTER_BITS - 1)

    def mint_range(self, now_ms: int) -> bytes:
        """The head of a range of ids, one for each partition and row."""
        if now_ms > self._now_ms or self._range < 0:
            self._now_ms = max(now_ms, self._now_ms)
            self._range = self._random.getrandbits(_RANGE_BITS - 1)
        elif self._range + 1 < _RANGE_LIMIT:
            self._range += 1
        else:
            self._now_ms += 1
            self._range = self._random.getrandbits(_RANGE_BITS - 1)
        return _range_head(self._now_ms, self._range)


def _range_head(now_ms: int, number: int) -> bytes:
    return ((now_ms << 24) | (8 << 20) | (number >> 6 << 8) | 0x80 | (number & 0x3F)).to_bytes(9)


def _range_number(item_id: bytes) -> int:
    return (int.from_bytes(item_id[6:8]) & 0xFFF) << 6 | (item_id[8] & 0x3F)


def range_id(head: bytes, partition: int, row: int) -> ItemId:
    return ItemId(head + partition.to_bytes(PARTITION_BYTES) + row.to_bytes(ROW_BYTES))


def range_end(head: bytes) -> ItemId:
    """The last id of a range."""
    return ItemId(head + _RANGE_END)


def is_from_range(item_id: bytes) -> bool:
    return item_id[6] >> 4 == 8


def origin_of(item_id: bytes) -> tuple[int, int] | None:
    """The partition and row of an item that has an origin, else None."""
    if not is_from_range(item_id):
        return None
    partition_end = ID_HEAD_BYTES + PARTITION_BYTES
    return (
        int.from_bytes(item_id[ID_HEAD_BYTES:partition_end]),
        int.from_bytes(item_id[partition_end:]),
    )


def shifted(item_id: bytes, by: int) -> ItemId:
    """The id that is `by` more, or less; ids of one add or part differ in the last 8 bytes only."""
    return item_id[:8] + (int.from_bytes(item_id[8:]) + by).to_bytes(8)  # type: ignore[return-value]


def ids_up_to(last: bytes, count: int) -> list[ItemId]:
    """`count` consecutive ids, of which `last` is the last."""
    # At most 256 at a time: those that differ in the last byte only cost half.
    ids: list[bytes] = []
    after = int.from_bytes(last) + 1
    start = after - count
    while start < after:
        first = start & 0xFF
        end = min(first + after - start, 256)
        head = (start >> 8).to_bytes(15)
        ids += [head + each for each in _LAST_BYTES[first:end]]
        start += end - first
    return cast("list[ItemId]", ids)


_LAST_BYTES = [bytes([n]) for n in range(256)]


def made_at_ms(item_id: bytes) -> int:
    """The time in an id."""
    return int.from_bytes(item_id[:6])


# --- messages of topics ---------------------------------------------------------------------------

_REFERENCE = Struct(">6xHQ")


def reference(partition: int, offset: int) -> ItemId:
    """What names a message of a topic, as an id names an item: 16 bytes that sort as partition and
    offset do. The ones of a block are consecutive, so a group's leases hold runs of messages as
    those of a queue hold runs of items."""
    return ItemId(_REFERENCE.pack(partition, offset))


def split_reference(item_id: bytes) -> tuple[int, int]:
    """Partition and offset; raises `ValueError` if the bytes are no reference."""
    if len(item_id) != ID_BYTES or item_id[:6] != bytes(6):
        raise ValueError(f"{item_id.hex()} does not name a message")
    partition, offset = _REFERENCE.unpack(item_id)
    return partition, offset


if not (PARTITIONS_MAX <= 1 << 8 * PARTITION_BYTES and ROWS_MAX <= 1 << 8 * ROW_BYTES):
    raise AssertionError("an id has too few bits for so many partitions or rows")
