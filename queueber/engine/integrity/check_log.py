"""Check a log: its head and readers agree with its blocks, which follow each other without a gap.

Walks all of the log, a block at a time: time grows with the log, memory does not.
"""

from collections.abc import Generator, Iterator
from dataclasses import replace

from queueber.db.families import Family
from queueber.db.records.keys import prefix_end
from queueber.db.records.log import (
    LogHead,
    decode_block,
    decode_log_head,
    decode_offset,
    split_reader_key,
)
from queueber.db.store.contract import Store
from queueber.limits import LOG_READERS_MAX


def check_log(store: Store, prefix: bytes) -> Iterator[str]:
    """What is wrong with the log, which is rule I12; nothing when it is sound."""
    stored = store.get(Family.LOGS, prefix)
    try:
        head = LogHead() if stored is None else decode_log_head(stored)
    except ValueError as error:
        yield f"its head cannot be read: {error}"
        return
    yield from _check_readers(store, prefix, head)
    walked = yield from _check_blocks(store, prefix, head)
    if walked != head:
        yield f"its blocks make {walked}, but it keeps {head}"


def _check_readers(store: Store, prefix: bytes, head: LogHead) -> Iterator[str]:
    count = 0
    # The first key after that of the head, which has no more than the prefix.
    for key, value in store.walk(Family.LOGS, prefix + b"\0", prefix_end(prefix)):
        count += 1
        try:
            reader, offset = split_reader_key(key), decode_offset(value)
        except ValueError as error:
            yield f"the reader {key.hex()} cannot be read: {error}"
            continue
        if offset > head.next_offset:
            yield f"the reader {reader!r} is at {offset}, but the log ends at {head.next_offset}"
    if count > LOG_READERS_MAX:
        yield f"it has {count} readers; the limit is {LOG_READERS_MAX}"


def _check_blocks(store: Store, prefix: bytes, head: LogHead) -> Generator[str, None, LogHead]:
    """Yields what is wrong between blocks; returns the head that they make."""
    # What a log without blocks remembers of those it had: its end, and its last time.
    walked = LogHead(
        first_offset=head.next_offset,
        next_offset=head.next_offset,
        start_position=head.end_position,
        end_position=head.end_position,
        last_ms=head.last_ms,
        first_block_end_offset=head.next_offset,
        first_block_end_position=head.end_position,
    )
    is_first = True
    for key, value in store.walk(Family.LOG_BLOCKS, prefix, prefix_end(prefix)):
        try:
            block = decode_block(key, value)
        except ValueError as error:
            yield f"the block {key.hex()} cannot be read: {error}"
            continue
        if not block.has_rising_ends():
            yield f"the block {key.hex()} has a row that ends before it begins"
        if is_first:
            is_first = False
            walked = LogHead(
                block.first_offset,
                block.end_offset,
                block.position,
                block.end_position,
                block.appended_at_ms,
                block.appended_at_ms,
                block.end_offset,
                block.end_position,
            )
            continue
        if block.first_offset != walked.next_offset:
            yield (
                f"the block {key.hex()} begins with offset {block.first_offset}, but the one "
                f"before it ends at {walked.next_offset}"
            )
        if block.position != walked.end_position:
            yield (
                f"the block {key.hex()} has position {block.position}, but the one before it ends "
                f"at {walked.end_position}"
            )
        if block.appended_at_ms < walked.last_ms:
            yield (
                f"the block {key.hex()} was appended at {block.appended_at_ms}, before the one "
                f"ahead of it, at {walked.last_ms}"
            )
        walked = replace(
            walked,
            next_offset=block.end_offset,
            end_position=block.end_position,
            last_ms=block.appended_at_ms,
        )
    return walked
