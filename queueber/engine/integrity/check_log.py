"""The check of a log: its head and readers agree with its blocks, which have no gap between them.

The check reads all of the log, a block at a time: its time grows with the log, its memory does not.
"""

from collections.abc import Generator, Iterator

from queueber.db.families import Family
from queueber.db.records.keys import prefix_end
from queueber.db.records.log import (
    Block,
    LogHead,
    decode_block,
    decode_log_head,
    decode_offset,
    head_of,
    split_reader_key,
)
from queueber.db.records.results import decode_result
from queueber.db.store.contract import Store
from queueber.engine.integrity.queue_entries import CheckedQueue, Violation
from queueber.limits import LOG_READERS_MAX


def check_log(store: Store, prefix: bytes) -> Iterator[str]:
    """Every way in which the log breaks rule I12."""
    stored = store.get(Family.LOGS, prefix)
    try:
        head = LogHead() if stored is None else decode_log_head(stored)
    except ValueError as error:
        yield f"its head cannot be read: {error}"
        return
    yield from _check_readers(store, prefix, head)
    walked = yield from _check_blocks(store, prefix, head)
    if walked != head:
        yield f"its blocks make {walked}, but its head is {head}"


def _check_readers(store: Store, prefix: bytes, head: LogHead) -> Iterator[str]:
    count = 0
    # Readers follow the head, whose key is the prefix alone.
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


def check_results(queue: CheckedQueue) -> Iterator[Violation]:
    """There is a result for each completed item, and none of an item that still exists."""
    head = queue.entries.get(Family.LOGS, b"")
    written = 0 if head is None else decode_log_head(head).next_offset
    completed = queue.counters.completed_total
    if written != completed:
        yield queue.broken("I12", f"{written} results for {completed} completed items")
    for key, value in queue.entries.walk(Family.LOG_BLOCKS):
        block = decode_block(queue.entries.prefix + key, value)
        ids = [decode_result(row).item_id for row in block.all_rows()]
        for item_id, item in zip(ids, queue.entries.get_many(Family.ITEMS, ids), strict=True):
            if item is not None:
                yield queue.broken("I12", f"{item_id.hex()} has a result and still exists")


def _check_blocks(store: Store, prefix: bytes, head: LogHead) -> Generator[str, None, LogHead]:
    """Yields what is wrong between blocks; returns the head that matches them."""
    first: Block | None = None
    last: Block | None = None
    for key, value in store.walk(Family.LOG_BLOCKS, prefix, prefix_end(prefix)):
        try:
            block = decode_block(key, value)
        except ValueError as error:
            yield f"the block {key.hex()} cannot be read: {error}"
            continue
        if not block.has_rising_ends():
            yield f"the block {key.hex()} has a row that ends before it begins"
        if last is not None:
            yield from _check_neighbours(key.hex(), last, block)
        first, last = first or block, block
    return head_of((first, last) if first and last else None, head)


def _check_neighbours(name: str, earlier: Block, block: Block) -> Iterator[str]:
    if block.first_offset != earlier.end_offset:
        yield (
            f"the block {name} begins with offset {block.first_offset}, but the one before it ends "
            f"at {earlier.end_offset}"
        )
    if block.position != earlier.end_position:
        yield (
            f"the block {name} has position {block.position}, but the one before it ends at "
            f"{earlier.end_position}"
        )
    if block.appended_at_ms < earlier.appended_at_ms:
        yield (
            f"the block {name} was appended at {block.appended_at_ms}, before the one ahead of it, "
            f"at {earlier.appended_at_ms}"
        )
