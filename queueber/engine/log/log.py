"""The log: rows in the order in which they were appended, under offsets that are never reused.

It knows nothing of queues: a log is a prefix of 4 bytes in `logs` and `log_blocks`. Rows are bytes
that mean nothing here. They are written, and deleted, a block at a time: a block is what one append
wrote. What is deleted, and when, is in `log_trim`.

A reader is known from its first acknowledgement until it is dropped. Offset n acknowledges the rows
before n, and is where the reader goes on.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from queueber.db.families import Family
from queueber.db.records.keys import prefix_end
from queueber.db.records.log import (
    ROW_END_BYTES,
    LogHead,
    block_bytes,
    block_key,
    decode_block,
    decode_log_head,
    decode_offset,
    encode_block,
    encode_log_head,
    encode_offset,
    reader_key,
    split_reader_key,
)
from queueber.db.store.contract import Batch, Reads, Store
from queueber.errors import InvalidArgument, ResourceExhausted, StorageCorrupt, invariant
from queueber.limits import LOG_READERS_MAX


@dataclass(slots=True)
class Log:
    """One log as it was last written. `head` is set by the caller of `append`, else only here."""

    prefix: bytes
    head: LogHead
    readers: dict[str, int]


@dataclass(frozen=True, slots=True)
class LogSlice:
    """Rows from `first_offset` up to, not including, `next_offset`."""

    first_offset: int
    rows: list[bytes]
    times_ms: list[int]
    next_offset: int
    missed: int
    """Rows between the offset asked for and the first: they have been deleted."""


def open_log(store: Store, prefix: bytes) -> Log:
    entries = store.scan(Family.LOGS, prefix, prefix_end(prefix), LOG_READERS_MAX + 2)
    log = Log(prefix, LogHead(), {})
    try:
        for key, value in entries:
            if key == prefix:
                log.head = decode_log_head(value)
            else:
                log.readers[split_reader_key(key)] = decode_offset(value)
    except ValueError as error:
        raise StorageCorrupt(
            f"the records of log {prefix.hex()} cannot be read; run 'queueber verify', and restore "
            "the store from a backup"
        ) from error
    invariant(len(log.readers) <= LOG_READERS_MAX, "I12", log=prefix, readers=len(log.readers))
    return log


# --- rows -----------------------------------------------------------------------------------------


def append(batch: Batch, log: Log, rows: Sequence[bytes], now_ms: int) -> LogHead:
    """Put the rows into the batch as one block; no rows, no block.

    The caller sets `log.head` to what this returns once the batch is written. Until then the log is
    as it was, so a batch takes one append of a log.
    """
    head = log.head
    if not rows:
        return head
    is_first = head.first_offset == head.next_offset
    at_ms = max(head.last_ms, now_ms)
    value = encode_block(
        rows, first_offset=head.next_offset, appended_at_ms=at_ms, position=head.end_position
    )
    end_offset = head.next_offset + len(rows)
    end_position = head.end_position + block_bytes(value)
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
    batch.put(Family.LOG_BLOCKS, block_key(log.prefix, end_offset - 1), value)
    batch.put(Family.LOGS, log.prefix, encode_log_head(appended))
    return appended


def read(reads: Reads, log: Log, offset: int, *, rows_max: int, bytes_max: int) -> LogSlice:
    """The rows from `offset` on, or from the oldest that is kept when that is later.

    Up to `rows_max` (at least 1), and `bytes_max` counted as everywhere in a log: 4 more than the
    length of each. A first row that is longer is given all the same: else nobody could get past it.
    """
    head = log.head
    _check_offset(log, offset)
    first = at = max(offset, head.first_offset)
    missed = first - offset
    rows: list[bytes] = []
    times_ms: list[int] = []
    if at == head.next_offset:
        return LogSlice(at, rows, times_ms, at, missed)

    room = bytes_max
    start, stop = block_key(log.prefix, at), block_key(log.prefix, head.next_offset)
    for key, value in reads.walk(Family.LOG_BLOCKS, start, stop):
        block = decode_block(key, value)
        invariant(block.first_offset <= at, "I12", log=log.prefix, missing=at)
        found = block.rows(at, rows_max=rows_max - len(rows), bytes_max=room)
        if not found and not rows:
            found = block.rows(at, rows_max=1, bytes_max=len(value))
        at += len(found)
        rows += found
        times_ms += [block.appended_at_ms] * len(found)
        room -= sum(map(len, found)) + ROW_END_BYTES * len(found)
        if at < block.end_offset or len(rows) == rows_max or room < ROW_END_BYTES:
            break
    else:
        invariant(at == head.next_offset, "I12", log=log.prefix, missing=at)
    return LogSlice(first, rows, times_ms, at, missed)


def _check_offset(log: Log, offset: int) -> None:
    if not 0 <= offset <= log.head.next_offset:
        raise InvalidArgument(
            f"offset is {offset}; the limit is {log.head.next_offset}, where the log ends now"
        )


# --- readers --------------------------------------------------------------------------------------


def acknowledge(store: Store, log: Log, reader: str, offset: int) -> None:
    """Remember that the reader is done with the rows before `offset`.

    One that lies before what the reader has acknowledged changes nothing: calls are repeated.
    """
    # A name of no bytes would be the key of the head.
    invariant(reader, "I12", log=log.prefix, reader=reader)
    _check_offset(log, offset)
    known = log.readers.get(reader)
    if known is not None and offset <= known:
        return
    if known is None and len(log.readers) >= LOG_READERS_MAX:
        raise ResourceExhausted(
            f"{reader!r} would be one reader more than the limit of {LOG_READERS_MAX}; "
            "drop one that reads no more"
        )
    batch = store.batch()
    batch.put(Family.LOGS, reader_key(log.prefix, reader), encode_offset(offset))
    store.write(batch)
    log.readers[reader] = offset


def reader_offset(log: Log, reader: str) -> int:
    """Where the reader goes on; for one that is not known, the oldest row.

    May lie before the oldest row: `read` then tells what the reader missed.
    """
    return log.readers.get(reader, log.head.first_offset)


def drop_reader(store: Store, log: Log, reader: str) -> bool:
    """Forget the reader, so that rows no longer wait for it; False when it was not known."""
    if reader not in log.readers:
        return False
    batch = store.batch()
    batch.delete(Family.LOGS, reader_key(log.prefix, reader))
    store.write(batch)
    del log.readers[reader]
    return True
