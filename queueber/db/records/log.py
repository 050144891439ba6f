"""Codecs for the records of a log: its head, its readers' offsets, its blocks, rows of results.

Each append writes a block. Its key ends with the offset of its last row, so the block that holds an
offset is the first one at or after that offset. Its value, big-endian:

    first offset (8) | appended-at ms (8) | position (8) | body

`position` counts the bytes of the bodies of all blocks that were ever appended before the block.
The log of a queue's results has rows of bytes. The body of its blocks is

    end of each row (4 each) | the rows

Ends are offsets from the start of the first row: so a page from the middle of a block of 10,000
rows is found without reading the rows before it, as it could not be with lengths. The body of a
block of messages is described in `messages.py`.
"""

import struct
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import NamedTuple

from queueber.db.records.keys import PREFIX_BYTES
from queueber.ids import ItemId
from queueber.limits import ID_BYTES

OFFSET_BYTES = 8
ROW_END_BYTES = 4


class LogHead(NamedTuple):
    """Offsets, positions and times of a log; all zero before the first append.

    The fields are in the order of the record. An end is the offset or position of what follows. A
    log without rows has `first_block_end_offset == first_offset == next_offset`, likewise its
    positions, and no `oldest_ms`.
    """

    first_offset: int = 0
    next_offset: int = 0
    start_position: int = 0
    end_position: int = 0
    oldest_ms: int = 0
    last_ms: int = 0
    first_block_end_offset: int = 0
    """Whole blocks are deleted, so the end of the first one says whether it is due."""
    first_block_end_position: int = 0

    @property
    def kept_bytes(self) -> int:
        return self.end_position - self.start_position


_HEAD = struct.Struct(">8Q")


def encode_log_head(head: LogHead) -> bytes:
    return _HEAD.pack(*head)


def decode_log_head(value: bytes) -> LogHead:
    """Raises `ValueError` if the value is no head."""
    if len(value) != _HEAD.size:
        raise ValueError(f"the head of a log has {len(value)} bytes instead of {_HEAD.size}")
    return LogHead(*_HEAD.unpack(value))


# --- readers --------------------------------------------------------------------------------------


def reader_key(prefix: bytes, reader: str) -> bytes:
    return prefix + reader.encode()


def split_reader_key(key: bytes) -> str:
    """Raises `ValueError` if the name is not UTF-8."""
    return key[PREFIX_BYTES:].decode()


def encode_offset(offset: int) -> bytes:
    return offset.to_bytes(OFFSET_BYTES)


def decode_offset(value: bytes) -> int:
    """Raises `ValueError` if the value is no offset."""
    if len(value) != OFFSET_BYTES:
        raise ValueError(f"an offset has {len(value)} bytes instead of {OFFSET_BYTES}")
    return int.from_bytes(value)


# --- blocks ---------------------------------------------------------------------------------------

_BLOCK_HEAD = struct.Struct(">QQQ")
_ENDS_AT = _BLOCK_HEAD.size


def block_key(prefix: bytes, last_offset: int) -> bytes:
    return prefix + last_offset.to_bytes(OFFSET_BYTES)


def split_block_key(key: bytes) -> int:
    """The offset of the block's last row; raises `ValueError` if the key is no block's."""
    return decode_offset(key[PREFIX_BYTES:])


def encode_block(body: bytes, *, first_offset: int, appended_at_ms: int, position: int) -> bytes:
    return _BLOCK_HEAD.pack(first_offset, appended_at_ms, position) + body


def encode_rows(rows: Sequence[bytes]) -> bytes:
    """The body of a block of rows."""
    ends = struct.pack(f">{len(rows)}I", *accumulate(map(len, rows)))
    return b"".join((ends, *rows))


def block_bytes(value: bytes) -> int:
    """The bytes that a block adds to the position of the next."""
    return len(value) - _ENDS_AT


@dataclass(frozen=True, slots=True)
class LogBlock:
    """A block of any log, as it is stored."""

    first_offset: int
    end_offset: int
    appended_at_ms: int
    position: int
    value: bytes

    @property
    def end_position(self) -> int:
        return self.position + block_bytes(self.value)

    @property
    def body(self) -> bytes:
        return self.value[_ENDS_AT:]


def decode_log_block(key: bytes, value: bytes) -> LogBlock:
    """Raises `ValueError` if the value is no block of a log, or not the one of that key."""
    return LogBlock(*_decode_head(key, value), value)


def _decode_head(key: bytes, value: bytes) -> tuple[int, int, int, int]:
    if len(value) < _ENDS_AT:
        raise ValueError(f"a block has only {len(value)} bytes")
    end_offset = split_block_key(key) + 1
    first_offset, appended_at_ms, position = _BLOCK_HEAD.unpack_from(value)
    if first_offset >= end_offset:
        raise ValueError(f"the rows of a block begin at {first_offset} and end at {end_offset}")
    return first_offset, end_offset, appended_at_ms, position


class Block(LogBlock):
    """A block of rows, which are read on demand."""

    __slots__ = ()

    def rows(self, offset: int, *, rows_max: int, bytes_max: int) -> list[bytes]:
        """The rows from `offset` on, as many as both limits allow."""
        value, count = self.value, self.end_offset - self.first_offset
        skipped = offset - self.first_offset
        ends_from = _ENDS_AT + skipped * ROW_END_BYTES
        wanted = min(rows_max, count - skipped)
        ends = struct.unpack_from(f">{wanted}I", value, ends_from)
        start = int.from_bytes(value[ends_from - ROW_END_BYTES : ends_from]) if skipped else 0
        fitting = bisect_right(
            range(wanted),
            bytes_max,
            key=lambda at: ends[at] - start + (at + 1) * ROW_END_BYTES,
        )
        rows_from = _ENDS_AT + count * ROW_END_BYTES
        return [value[rows_from + a : rows_from + b] for a, b in pairwise((start, *ends[:fitting]))]

    def all_rows(self) -> list[bytes]:
        count = self.end_offset - self.first_offset
        return self.rows(self.first_offset, rows_max=count, bytes_max=len(self.value))

    def has_rising_ends(self) -> bool:
        """Whether no row ends before it begins. Too slow a check for every read."""
        count = self.end_offset - self.first_offset
        ends = struct.unpack_from(f">{count}I", self.value, _ENDS_AT)
        return all(a <= b for a, b in pairwise(ends))


def head_of(blocks: tuple[LogBlock, LogBlock] | None, old: LogHead) -> LogHead:
    """The head of a log with these as its first and last block, or none: `old` says where it ended.

    A log without blocks continues at its old end: an offset is never used twice.
    """
    if blocks is None:
        end, position = old.next_offset, old.end_position
        return LogHead(end, end, position, position, 0, old.last_ms, end, position)
    first, last = blocks
    return LogHead(
        first.first_offset,
        last.end_offset,
        first.position,
        last.end_position,
        first.appended_at_ms,
        last.appended_at_ms,
        first.end_offset,
        first.end_position,
    )


def decode_block(key: bytes, value: bytes) -> Block:
    """Raises `ValueError` if the value is no block of rows, or not the one of that key."""
    first_offset, end_offset, appended_at_ms, position = _decode_head(key, value)
    count = end_offset - first_offset
    rows_from = _ENDS_AT + count * ROW_END_BYTES
    if rows_from > len(value):
        raise ValueError(f"a block of {len(value)} bytes has no room for {count} rows")
    rows_bytes = int.from_bytes(value[rows_from - ROW_END_BYTES : rows_from])
    if rows_from + rows_bytes != len(value):
        raise ValueError(f"the {count} rows of a block of {len(value)} bytes end elsewhere")
    return Block(first_offset, end_offset, appended_at_ms, position, value)


# --- results: what the rows of a queue's log are --------------------------------------------------

# Id, attempt, the lengths of key, batch and attributes, then those three and the result. Attributes
# are packed as in the item's record.
_ROW = struct.Struct(f">{ID_BYTES}s H H H H")
_SIZES = struct.Struct(">HH")
_SIZES_AT = ID_BYTES + 2
_RESULT_HEAD = struct.Struct(">HHHH")


class ResultRow(NamedTuple):
    item_id: ItemId
    attempt: int
    key: bytes
    batch: bytes
    attributes: bytes
    result: bytes


def encode_result(
    item_id: bytes, result: bytes, *, attempt: int, key: bytes, batch: bytes, attributes: bytes
) -> bytes:
    return item_id + result_head(attempt, key, batch, attributes) + result


def result_head(attempt: int, key: bytes, batch: bytes, attributes: bytes) -> bytes:
    """What stands between an item's id and its result. Items of one run often have the same."""
    head = _RESULT_HEAD.pack(attempt, len(key), len(batch), len(attributes))
    return head + key + batch + attributes


def decode_result(row: bytes) -> ResultRow:
    item_id, attempt, key_size, batch_size, attributes_size = _ROW.unpack_from(row)
    key_end = _ROW.size + key_size
    batch_end = key_end + batch_size
    end = batch_end + attributes_size
    return ResultRow(
        item_id,
        attempt,
        row[_ROW.size : key_end],
        row[key_end:batch_end],
        row[batch_end:end],
        row[end:],
    )


def is_of_batch(row: bytes, batch: bytes) -> bool:
    """Whether a row belongs to the batch. It is not decoded: most rows may belong to others."""
    key_size, batch_size = _SIZES.unpack_from(row, _SIZES_AT)
    start = _ROW.size + key_size
    return row[start : start + batch_size] == batch
