"""The check and the rebuild of a log.

In a sound log, head and readers agree with the blocks, which have no gap between them. A rebuild
keeps the newest blocks without a gap. Both read all of the log, a block at a time. The time of the
check grows with the log, its memory does not.
"""

from collections import Counter
from collections.abc import Generator, Iterator

from queueber.db.families import Family
from queueber.db.records import log
from queueber.db.records.keys import prefix_end
from queueber.db.records.log import Block, LogBlock, LogHead, decode_result
from queueber.db.store.contract import Store
from queueber.engine.integrity.queue_entries import CheckedQueue, QueueEntries, Violation, readable
from queueber.engine.integrity.stored_blocks import BlockFinder
from queueber.ids import ItemId
from queueber.limits import LOG_READERS_MAX

# --- check ----------------------------------------------------------------------------------------


def check_log(store: Store, prefix: bytes) -> Iterator[str]:
    """Every way in which the log breaks rule I12."""
    stored = store.get(Family.LOGS, prefix)
    try:
        head = LogHead() if stored is None else log.decode_log_head(stored)
    except ValueError as error:
        yield f"its head cannot be read: {error}"
        return
    yield from check_readers(store, prefix, head)
    walked = yield from _check_blocks(store, prefix, head)
    if walked != head:
        yield f"its blocks make {walked}, but its head is {head}"


def check_readers(store: Store, prefix: bytes, head: LogHead) -> Iterator[str]:
    count = 0
    # Readers follow the head, whose key is the prefix alone.
    for key, value in store.walk(Family.LOGS, prefix + b"\0", prefix_end(prefix)):
        count += 1
        try:
            reader, offset = log.split_reader_key(key), log.decode_offset(value)
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
    written = 0 if head is None else log.decode_log_head(head).next_offset
    completed = queue.counters.completed_total
    if written != completed:
        yield queue.broken("I12", f"{written} results for {completed} completed items")
    finder = BlockFinder(queue.entries)
    for item_id in _ids_with_results(queue.entries):
        found = finder.find(item_id)
        if found is not None and found[0].left >> found[1] & 1:
            yield queue.broken("I12", f"{item_id.hex()} has a result and still exists")


def _ids_with_results(entries: QueueEntries) -> Iterator[ItemId]:
    for key, value in entries.walk(Family.LOG_BLOCKS):
        yield from _ids_of(log.decode_block(entries.prefix + key, value))


def _check_blocks(store: Store, prefix: bytes, head: LogHead) -> Generator[str, None, LogHead]:
    """Yields what is wrong between blocks; returns the head that matches them."""
    first: Block | None = None
    last: Block | None = None
    for key, value in store.walk(Family.LOG_BLOCKS, prefix, prefix_end(prefix)):
        try:
            block = log.decode_block(key, value)
        except ValueError as error:
            yield f"the block {key.hex()} cannot be read: {error}"
            continue
        if not block.has_rising_ends():
            yield f"the block {key.hex()} has a row that ends before it begins"
        if last is not None:
            yield from check_neighbours(key.hex(), last, block)
        first, last = first or block, block
    return log.head_of((first, last) if first and last else None, head)


def check_neighbours(name: str, earlier: LogBlock, block: LogBlock) -> Iterator[str]:
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


# --- rebuild --------------------------------------------------------------------------------------


def rebuild_log(store: Store, prefix: bytes, lost: Counter[str]) -> LogHead:
    """The new head; `lost` counts what is not kept."""
    kept: list[tuple[bytes, Block]] = []
    batch = store.batch()
    for key, value in store.walk(Family.LOG_BLOCKS, prefix, prefix_end(prefix)):
        block = readable(_sound_block, key, value)
        if block is None:
            batch.delete(Family.LOG_BLOCKS, key)
            lost["blocks of results that cannot be read"] += 1
            continue
        if kept and any(check_neighbours("", kept[-1][1], block)):
            for old_key, old in kept:
                batch.delete(Family.LOG_BLOCKS, old_key)
                lost["results before such a block"] += old.end_offset - old.first_offset
            kept = []
        kept.append((key, block))
    bounds = (kept[0][1], kept[-1][1]) if kept else None
    old_head = readable(log.decode_log_head, store.get(Family.LOGS, prefix) or b"")
    head = log.head_of(bounds, old_head or LogHead())
    batch.put(Family.LOGS, prefix, log.encode_log_head(head))
    for key, value in store.walk(Family.LOGS, prefix + b"\0", prefix_end(prefix)):
        offset = readable(log.decode_offset, value)
        if offset is None or readable(log.split_reader_key, key) is None:
            batch.delete(Family.LOGS, key)
            lost["readers of results"] += 1
        elif offset > head.next_offset:
            batch.put(Family.LOGS, key, log.encode_offset(head.next_offset))
    store.write(batch)
    return head


def completed_items(entries: QueueEntries) -> dict[ItemId, int]:
    """By block: the bits of the items that have a result in a sound log."""
    completed: dict[ItemId, int] = {}
    finder = BlockFinder(entries)
    for item_id in _ids_with_results(entries):
        if (found := finder.find(item_id)) is not None:
            block, position = found
            completed[block.last] = completed.get(block.last, 0) | 1 << position
    return completed


def _sound_block(key: bytes, value: bytes) -> Block | None:
    block = log.decode_block(key, value)
    _ids_of(block)
    return block if block.has_rising_ends() else None


def _ids_of(block: Block) -> list[ItemId]:
    return [decode_result(row).item_id for row in block.all_rows()]
