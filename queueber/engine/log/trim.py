"""Trim: delete the oldest blocks of a log, once all readers have read them or at a limit.

Offsets, times and positions rise from block to block. So a rule that deletes a block deletes all
before it, and a binary search with one seek a step finds the first block to keep.
"""

from typing import Any

from queueber.db.families import Family
from queueber.db.records.keys import prefix_end
from queueber.db.records.log import Block, LogHead, block_key, decode_block, head_of
from queueber.db.store.contract import Store
from queueber.engine.kernel.transaction import Transaction
from queueber.engine.log.log import Log, trim_due_ms
from queueber.errors import invariant
from queueber.limits import MIB

_SINGLE_DELETES_MAX = 256
_SINGLE_DELETES_BYTES_MAX = MIB
"""Up to this size a trim reads its blocks and deletes them one by one.

After each range deletion the next seek sorts all range deletions of the write buffer again. Trims
of one block each soon make 5000 of them, and then a seek takes 1 ms. Single deletions cost later
seeks nothing, because no seek starts before the first kept row.
"""


_Line = tuple[int, int, int]
"""Where to cut: a block is kept if its end offset, time and end position are above these."""


def trim(tx: Transaction[Any], log: Log, *, age_ms: int, bytes_max: int) -> int:
    """Delete every block of which one of these is true; returns how many rows were deleted.

    - All its rows are acknowledged by all readers, and there is a reader.
    - It was appended `age_ms` ago, or earlier (0: no limit).
    - `bytes_max` or more were appended after it (0: no limit). So the newest `bytes_max` are kept,
      with the whole block in which they begin: no append is deleted because of its own size.
    """
    head, now_ms = log.head, tx.now_ms
    if trim_due_ms(log, now_ms=now_ms, age_ms=age_ms, bytes_max=bytes_max) > now_ms:
        return 0
    # Without a limit, a value lower than that of any block.
    line = (
        min(log.readers.values(), default=0),
        now_ms - age_ms if age_ms else -1,
        head.end_position - bytes_max if bytes_max else 0,
    )
    kept = _first_kept(tx.store, log, line)
    if kept is None:
        trimmed = head_of(None, head)
    else:
        trimmed = head._replace(
            first_offset=kept.first_offset,
            start_position=kept.position,
            oldest_ms=kept.appended_at_ms,
            first_block_end_offset=kept.end_offset,
            first_block_end_position=kept.end_position,
        )
    _delete_blocks(tx, log, trimmed)
    log.replace_head(tx, trimmed)
    return trimmed.first_offset - head.first_offset


def _is_kept(line: _Line, end_offset: int, appended_at_ms: int, end_position: int) -> bool:
    return end_offset > line[0] and appended_at_ms > line[1] and end_position > line[2]


def _first_kept(store: Store, log: Log, line: _Line) -> Block | None:
    """The first block to keep, when the first of all is deleted; None if all are."""
    head = log.head
    if not _is_kept(line, head.next_offset, head.last_ms, head.end_position):
        return None
    kept: Block | None = None
    low, high = head.first_block_end_offset, head.next_offset
    reach = 0
    while low < high:
        block = _block_at(store, log.prefix, low + min(reach, (high - low) // 2))
        if _is_kept(line, block.end_offset, block.appended_at_ms, block.end_position):
            high, kept = block.first_offset, block
        else:
            low = block.end_offset
            # Most trims are short, so the search first goes from the front in steps that double,
            # and then halves: the seeks grow with the logarithm of the deleted rows.
            reach = 2 * reach + block.end_offset - block.first_offset
    invariant(low == high and kept is not None, "I12", log=log.prefix, low=low, high=high)
    return kept


def _block_at(store: Store, prefix: bytes, offset: int) -> Block:
    found = store.scan(Family.LOG_BLOCKS, block_key(prefix, offset), prefix_end(prefix), 1)
    invariant(found, "I12", log=prefix, missing=offset)
    block = decode_block(*found[0])
    invariant(block.first_offset <= offset, "I12", log=prefix, missing=offset)
    return block


def _delete_blocks(tx: Transaction[Any], log: Log, trimmed: LogHead) -> None:
    head, prefix, batch = log.head, log.prefix, tx.batch
    if trimmed.first_offset == head.first_block_end_offset:
        batch.delete(Family.LOG_BLOCKS, block_key(prefix, trimmed.first_offset - 1))
        return
    start, stop = block_key(prefix, head.first_offset), block_key(prefix, trimmed.first_offset)
    if trimmed.start_position - head.start_position <= _SINGLE_DELETES_BYTES_MAX:
        found = tx.store.scan(Family.LOG_BLOCKS, start, stop, _SINGLE_DELETES_MAX + 1)
        if len(found) <= _SINGLE_DELETES_MAX:
            batch.delete_many(Family.LOG_BLOCKS, [key for key, _ in found])
            return
    batch.delete_range(Family.LOG_BLOCKS, start, stop)
