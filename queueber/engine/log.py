"""The log: rows in the order in which they were appended, under offsets that are never reused.

This module knows nothing of queues: a log is a prefix of 4 bytes in `logs` and `log_blocks`, and a
row is any bytes. Rows are written and deleted a block at a time: a block is what one append wrote.
What the body of a block looks like is a matter of whoever appends: `append` and `read` are for rows
of bytes, and a topic's blocks have messages.

A log remembers a reader from its first acknowledgement until it is dropped. Offset n acknowledges
the rows before n, and the reader goes on at n.

A trim deletes the oldest blocks, once all readers have read them or at a limit. Offsets, times and
positions rise from block to block. So a rule that deletes a block deletes all before it, and a
binary search with one seek a step finds the first block to keep. A trim to an offset may end inside
a block: then the log begins there, and the block stays until all its rows are behind.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

from queueber.db.families import Family
from queueber.db.records import log as codec
from queueber.db.records.keys import NEVER_MS, prefix_end
from queueber.db.records.log import LogHead
from queueber.db.store.contract import Reads, Store
from queueber.engine.kernel.transaction import Transaction
from queueber.errors import InvalidArgument, ResourceExhausted, StorageCorrupt, invariant
from queueber.limits import LOG_READERS_MAX, MIB


@dataclass(slots=True)
class Log:
    """One log as it was last written."""

    prefix: bytes
    head: LogHead
    readers: dict[str, int]
    """For each reader the offset where it goes on: it has acknowledged the rows before."""

    __hash__ = object.__hash__

    def replace_head(self, tx: Transaction[Any], head: LogHead) -> None:
        """Write a new head; the log has it once the transaction is written."""
        tx.batch.put(Family.LOGS, self.prefix, codec.encode_log_head(head))
        if self not in tx.pending:
            tx.after_write(self._take_head, tx.pending)
        tx.pending[self] = head

    def head_in(self, tx: Transaction[Any]) -> LogHead:
        """The head, with the changes of this transaction so far."""
        head: LogHead = tx.pending.get(self, self.head)
        return head

    def _take_head(self, pending: Mapping[object, LogHead]) -> None:
        self.head = pending[self]


@dataclass(frozen=True, slots=True)
class LogSlice:
    """Rows from `first_offset` up to, not including, `next_offset`."""

    first_offset: int
    rows: list[bytes]
    times_ms: list[int]
    next_offset: int
    missed: int
    """How many rows from the requested offset on were deleted before they were read."""


def open_log(store: Store, prefix: bytes) -> Log:
    entries = store.scan(Family.LOGS, prefix, prefix_end(prefix), LOG_READERS_MAX + 2)
    log = Log(prefix, LogHead(), {})
    try:
        for key, value in entries:
            if key == prefix:
                log.head = codec.decode_log_head(value)
            else:
                log.readers[codec.split_reader_key(key)] = codec.decode_offset(value)
    except ValueError as error:
        raise StorageCorrupt(
            f"the records of log {prefix.hex()} cannot be read; run 'queueber verify', and restore "
            "the store from a backup"
        ) from error
    invariant(len(log.readers) <= LOG_READERS_MAX, "I12", log=prefix, readers=len(log.readers))
    return log


def append(
    tx: Transaction[Any], log: Log, rows: Sequence[bytes], *, not_before_ms: int = 0
) -> LogHead:
    """Append the rows, if there are any, as one block. Returns the head that the log will have."""
    if not rows:
        return log.head_in(tx)
    return append_block(tx, log, codec.encode_rows(rows), len(rows), not_before_ms=not_before_ms)


def append_block(
    tx: Transaction[Any], log: Log, body: bytes, count: int, *, not_before_ms: int = 0
) -> LogHead:
    """Append a block of `count` rows. Returns the head that the log will have.

    Its time is not before that of the block before it, nor `not_before_ms`: a clock may be set
    back."""
    head = log.head_in(tx)
    is_first = head.first_offset == head.next_offset
    at_ms = max(head.last_ms, tx.now_ms, not_before_ms)
    value = codec.encode_block(
        body, first_offset=head.next_offset, appended_at_ms=at_ms, position=head.end_position
    )
    end_offset = head.next_offset + count
    end_position = head.end_position + codec.block_bytes(value)
    appended = LogHead(
        head.first_offset,
        end_offset,
        head.start_position,
        end_position,
        at_ms if is_first else head.oldest_ms,
        at_ms,
        end_offset if is_first else head.first_block_end_offset,
        end_position if is_first else head.first_block_end_position,
    )
    tx.batch.put(Family.LOG_BLOCKS, codec.block_key(log.prefix, end_offset - 1), value)
    log.replace_head(tx, appended)
    return appended


def read(reads: Reads, log: Log, offset: int, *, rows_max: int, bytes_max: int) -> LogSlice:
    """The rows from `offset` on, or from the oldest that is kept when that is later.

    Up to `rows_max` (at least 1) and `bytes_max`, where a row counts 4 bytes more than its length.
    The first row is returned even if it is longer: otherwise no reader could get past it.
    """
    head = log.head
    check_offset(log, offset)
    first = at = max(offset, head.first_offset)
    missed = first - offset
    rows: list[bytes] = []
    times_ms: list[int] = []
    if at == head.next_offset:
        return LogSlice(at, rows, times_ms, at, missed)

    bytes_left = bytes_max
    start, stop = codec.block_key(log.prefix, at), codec.block_key(log.prefix, head.next_offset)
    for key, value in reads.walk(Family.LOG_BLOCKS, start, stop):
        block = codec.decode_block(key, value)
        invariant(block.first_offset <= at, "I12", log=log.prefix, missing=at)
        found = block.rows(at, rows_max=rows_max - len(rows), bytes_max=bytes_left)
        if not found and not rows:
            found = block.rows(at, rows_max=1, bytes_max=len(value))
        at += len(found)
        rows += found
        times_ms += [block.appended_at_ms] * len(found)
        bytes_left -= sum(map(len, found)) + codec.ROW_END_BYTES * len(found)
        if at < block.end_offset or len(rows) == rows_max or bytes_left < codec.ROW_END_BYTES:
            break
    else:
        invariant(at == head.next_offset, "I12", log=log.prefix, missing=at)
    return LogSlice(first, rows, times_ms, at, missed)


def check_offset(log: Log, offset: int) -> None:
    if not 0 <= offset <= log.head.next_offset:
        raise InvalidArgument(
            f"offset is {offset}; the limit is {log.head.next_offset}, where the log ends now"
        )


# --- readers --------------------------------------------------------------------------------------


def acknowledge(tx: Transaction[Any], log: Log, reader: str, offset: int) -> None:
    """Remember that the reader is done with the rows before `offset`.

    An offset that the reader has passed already changes nothing, because calls may be repeated.
    """
    # With an empty name the key would be that of the head.
    invariant(reader, "I12", log=log.prefix, reader=reader)
    check_offset(log, offset)
    known = log.readers.get(reader)
    if known is not None and offset <= known:
        return
    if known is None and len(log.readers) >= LOG_READERS_MAX:
        raise ResourceExhausted(
            f"{reader!r} would be one reader more than the limit of {LOG_READERS_MAX}; "
            "drop one that reads no more"
        )
    tx.batch.put(Family.LOGS, codec.reader_key(log.prefix, reader), codec.encode_offset(offset))
    tx.after_write(log.readers.__setitem__, reader, offset)


def reader_offset(log: Log, reader: str) -> int:
    """Where the reader goes on; for an unknown reader, the oldest row.

    The offset may be before the oldest row: `read` then says how many rows the reader missed.
    """
    return log.readers.get(reader, log.head.first_offset)


def drop_reader(tx: Transaction[Any], log: Log, reader: str) -> bool:
    """Forget the reader, so that no rows are kept for it; False if it was not known."""
    if reader not in log.readers:
        return False
    tx.batch.delete(Family.LOGS, codec.reader_key(log.prefix, reader))
    tx.after_write(log.readers.pop, reader)
    return True


# --- trim -----------------------------------------------------------------------------------------

_SINGLE_DELETES_MAX = 256
_SINGLE_DELETES_BYTES_MAX = MIB
"""Up to this size a trim reads its blocks and deletes them one by one.

After each range deletion the next seek sorts all range deletions of the write buffer again. Trims
of one block each soon make 5000 of them, and then a seek takes 1 ms. Single deletions cost later
seeks nothing, because no seek starts before the first kept row.
"""

_Line = tuple[int, int, int]
"""Where to cut: a block is kept if its end offset, time and end position are above these."""


class Limits(NamedTuple):
    """What a log keeps. A block is deleted when one of these is true of it; 0: no limit.

    Every complete and publish makes one, and a frozen dataclass would take 1 µs.
    """

    age_ms: int = 0
    """It was appended so long ago, or earlier."""
    bytes_max: int = 0
    """So many bytes or more were appended after it. So the newest `bytes_max` are kept, with the
    whole block in which they begin: no append is deleted because of its own size."""
    rows_max: int = 0
    """So many rows or more were appended after it."""
    acknowledged: int = 0
    """All its rows are before this offset, because nobody needs those any more."""


def trim_due_ms(log: Log, limits: Limits, now_ms: int, *, head: LogHead | None = None) -> int:
    """When `trim` has something to delete: `now_ms` or earlier exactly if it has now.

    `head` is that of the log, if it is about to change.
    """
    head = head or log.head
    if head.first_offset == head.next_offset:
        return NEVER_MS
    newer_bytes = head.end_position - head.first_block_end_position
    newer_rows = head.next_offset - head.first_block_end_offset
    if (
        limits.acknowledged >= head.first_block_end_offset
        or (limits.bytes_max and newer_bytes >= limits.bytes_max)
        or (limits.rows_max and newer_rows >= limits.rows_max)
    ):
        return now_ms
    return head.oldest_ms + limits.age_ms if limits.age_ms else NEVER_MS


def trim(tx: Transaction[Any], log: Log, limits: Limits) -> int:
    """Delete every block that is beyond the limits; returns how many rows were deleted."""
    head, now_ms = log.head, tx.now_ms
    if trim_due_ms(log, limits, now_ms) > now_ms:
        return 0
    # Without a limit, a value lower than that of any block.
    offset = head.next_offset - limits.rows_max if limits.rows_max else 0
    line = (
        max(limits.acknowledged, offset),
        now_ms - limits.age_ms if limits.age_ms else -1,
        head.end_position - limits.bytes_max if limits.bytes_max else 0,
    )
    return _trim_to(tx, log, _first_kept(tx.store, log, line), 0)


def trim_to(tx: Transaction[Any], log: Log, offset: int) -> int:
    """Delete all rows before the offset; returns how many there were."""
    head = log.head
    check_offset(log, offset)
    if offset <= head.first_offset:
        return 0
    kept = None if offset == head.next_offset else block_at(tx.store, log.prefix, offset)
    return _trim_to(tx, log, kept, offset)


def _trim_to(tx: Transaction[Any], log: Log, kept: codec.LogBlock | None, offset: int) -> int:
    """Delete the blocks before `kept`, and of that one the rows before the offset."""
    head = log.head
    if kept is None:
        trimmed = codec.head_of(None, head)
    else:
        trimmed = head._replace(
            first_offset=max(kept.first_offset, offset, head.first_offset),
            start_position=kept.position,
            oldest_ms=kept.appended_at_ms,
            first_block_end_offset=kept.end_offset,
            first_block_end_position=kept.end_position,
        )
    _delete_blocks(tx, log, trimmed, kept)
    log.replace_head(tx, trimmed)
    return trimmed.first_offset - head.first_offset


def _is_kept(line: _Line, end_offset: int, appended_at_ms: int, end_position: int) -> bool:
    return end_offset > line[0] and appended_at_ms > line[1] and end_position > line[2]


def _first_kept(store: Store, log: Log, line: _Line) -> codec.LogBlock | None:
    """The first block to keep, when the first of all is deleted; None if all are."""
    head = log.head
    if not _is_kept(line, head.next_offset, head.last_ms, head.end_position):
        return None
    kept: codec.LogBlock | None = None
    low, high = head.first_block_end_offset, head.next_offset
    reach = 0
    while low < high:
        block = block_at(store, log.prefix, low + min(reach, (high - low) // 2))
        if _is_kept(line, block.end_offset, block.appended_at_ms, block.end_position):
            high, kept = block.first_offset, block
        else:
            low = block.end_offset
            # Most trims are short, so the search first goes from the front in steps that double,
            # and then halves: the seeks grow with the logarithm of the deleted rows.
            reach = 2 * reach + block.end_offset - block.first_offset
    invariant(low == high and kept is not None, "I12", log=log.prefix, low=low, high=high)
    return kept


def block_at(reads: Reads, prefix: bytes, offset: int) -> codec.LogBlock:
    """The block that has the offset."""
    block = block_from(reads, prefix, offset)
    invariant(block and block.first_offset <= offset, "I12", log=prefix, missing=offset)
    return cast("codec.LogBlock", block)


def block_from(reads: Reads, prefix: bytes, offset: int) -> codec.LogBlock | None:
    """The block that has the offset, or the next one; None if there is none."""
    found = reads.scan(Family.LOG_BLOCKS, codec.block_key(prefix, offset), prefix_end(prefix), 1)
    return codec.decode_log_block(*found[0]) if found else None


def _delete_blocks(
    tx: Transaction[Any], log: Log, trimmed: LogHead, kept: codec.LogBlock | None
) -> None:
    """Delete the blocks before `kept`; None: all."""
    head, prefix, batch = log.head, log.prefix, tx.batch
    end = head.next_offset if kept is None else kept.first_offset
    if end < head.first_block_end_offset:
        return
    if end == head.first_block_end_offset:
        batch.delete(Family.LOG_BLOCKS, codec.block_key(prefix, end - 1))
        return
    start = codec.block_key(prefix, head.first_offset)
    stop = codec.block_key(prefix, end)
    if trimmed.start_position - head.start_position <= _SINGLE_DELETES_BYTES_MAX:
        found = tx.store.scan(Family.LOG_BLOCKS, start, stop, _SINGLE_DELETES_MAX + 1)
        if len(found) <= _SINGLE_DELETES_MAX:
            batch.delete_many(Family.LOG_BLOCKS, [key for key, _ in found])
            return
    batch.delete_range(Family.LOG_BLOCKS, start, stop)
