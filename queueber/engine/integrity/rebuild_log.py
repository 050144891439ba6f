"""Rebuild a log from its blocks: the newest ones without a gap between them are kept."""

from collections import Counter

from queueber.db.families import Family
from queueber.db.records.keys import prefix_end
from queueber.db.records.log import (
    Block,
    LogHead,
    decode_block,
    decode_log_head,
    decode_offset,
    encode_log_head,
    encode_offset,
    head_of,
    split_reader_key,
)
from queueber.db.records.results import decode_result
from queueber.db.store.contract import Store
from queueber.ids import ItemId


def rebuild_log(store: Store, prefix: bytes, lost: Counter[str]) -> tuple[LogHead, set[ItemId]]:
    """The new head, and the ids in the rows that are kept; `lost` counts what is not."""
    kept: list[tuple[bytes, Block]] = []
    batch = store.batch()
    for key, value in store.walk(Family.LOG_BLOCKS, prefix, prefix_end(prefix)):
        block = _read_block(key, value)
        if block is None:
            batch.delete(Family.LOG_BLOCKS, key)
            lost["blocks of results that cannot be read"] += 1
            continue
        if kept and not _follows(kept[-1][1], block):
            for old_key, old in kept:
                batch.delete(Family.LOG_BLOCKS, old_key)
                lost["results before such a block"] += old.end_offset - old.first_offset
            kept = []
        kept.append((key, block))
    bounds = (kept[0][1], kept[-1][1]) if kept else None
    head = head_of(bounds, _old_head(store, prefix))
    batch.put(Family.LOGS, prefix, encode_log_head(head))
    for key, value in store.walk(Family.LOGS, prefix + b"\0", prefix_end(prefix)):
        offset = _read_reader(key, value)
        if offset is None:
            batch.delete(Family.LOGS, key)
            lost["readers of results"] += 1
        elif offset > head.next_offset:
            batch.put(Family.LOGS, key, encode_offset(head.next_offset))
    store.write(batch)
    return head, {item_id for _, block in kept for item_id in _ids_of(block)}


def _follows(earlier: Block, later: Block) -> bool:
    return (
        later.first_offset == earlier.end_offset
        and later.position == earlier.end_position
        and later.appended_at_ms >= earlier.appended_at_ms
    )


def _read_block(key: bytes, value: bytes) -> Block | None:
    try:
        block = decode_block(key, value)
        _ids_of(block)
        return block if block.has_rising_ends() else None
    except Exception:  # noqa: BLE001  damaged bytes raise all kinds
        return None


def _ids_of(block: Block) -> list[ItemId]:
    return [decode_result(row).item_id for row in block.all_rows()]


def _read_reader(key: bytes, value: bytes) -> int | None:
    try:
        split_reader_key(key)
        return decode_offset(value)
    except ValueError:
        return None


def _old_head(store: Store, prefix: bytes) -> LogHead:
    stored = store.get(Family.LOGS, prefix)
    try:
        return LogHead() if stored is None else decode_log_head(stored)
    except ValueError:
        return LogHead()
