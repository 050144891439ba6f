"""Find: an item by its id, in whatever state, and what happened to it. Changes nothing.

Each index is looked up for the id. An item that is done is only in the log of results, which has no
index by id. But it is ordered by time, and an id has the time of its add. So the log is bisected
for the first result that may be that of the item, and read from there on, a bounded part a call.
"""

from queueber.db.families import Family
from queueber.db.records.attempts import Failed, decode_attempts
from queueber.db.records.keys import split_due_part, text_digest
from queueber.db.records.log import block_key, decode_block
from queueber.db.records.queues import Counters
from queueber.db.records.remembered import decode_key_entry, known_item
from queueber.db.records.runs import Entry, count_items
from queueber.db.store.contract import Reads, Store
from queueber.engine.log import Log, block_at
from queueber.engine.queue.lifecycle import DeathReason
from queueber.engine.queue.peek import Found, FoundRun, read_item
from queueber.engine.queue.places import find_entry, find_times
from queueber.engine.queue.queue_state import QueueState, live_view
from queueber.engine.queue.results import decode_row
from queueber.ids import ItemId, made_at_ms
from queueber.limits import ID_BYTES, MIB, READ_LOOKED_AT_MAX
from queueber.model import Attempt, Finding, FoundItem, ItemState, LeaseInfo, Result

_BYTES_MAX = 4 * MIB
"""Bytes of results that a call looks at: some milliseconds."""
Place = tuple[int | None, Entry]
"""The level of a ready run, None if it is delayed; and its entry."""


def find_item(store: Store, queue: QueueState, item_id: bytes, offset: int = 0) -> Finding:
    """The item, if it is in the queue, or among the results that this call looks at: those from
    `offset` on, or (0) from the time on at which it was added."""
    if not offset:
        found = _in_queue(store, queue, item_id)
        if found is not None:
            return Finding(item_id, found)
        offset = _first_since(store, queue.results, made_at_ms(item_id))
    result, next_offset = _in_results(store, queue.results, item_id, offset)
    if result is not None:
        return Finding(item_id, FoundItem(item_id, None, None, result=result))
    return Finding(item_id, None, next_offset)


def id_of_key(store: Store, queue: QueueState, key: str, now_ms: int) -> bytes:
    """The id of the first item with the key within its window, whatever became of that; then as
    long as it is in the queue. Empty if the queue does not know it."""
    entry = store.get(Family.KEYS, queue.prefix + text_digest(key))
    if entry is None:
        return b""
    item_id, _ = decode_key_entry(entry)
    is_known = known_item(entry, now_ms) or _place(store, queue, item_id) is not None
    return item_id if is_known else b""


def find_waiting(
    store: Store, queue: QueueState, counters: Counters, item_id: bytes
) -> Place | None:
    """The entry of an item that is ready or delayed."""
    for at_ms in find_times(store, queue.prefix, item_id):
        if counters.delayed:
            entry = find_entry(store, Family.DELAYED, queue.prefix, at_ms, item_id)
            if entry is not None:
                return None, entry
        ready = queue.ready.find(counters, at_ms, item_id)
        if ready is not None:
            return ready
    return None


# --- in the queue ---------------------------------------------------------------------------------


def _in_queue(store: Store, queue: QueueState, item_id: bytes) -> FoundItem | None:
    place = _place(store, queue, item_id)
    if place is None:
        return None
    state, of, lease = place
    position = of.run.position_of(item_id)
    if position is None:
        return None
    view = live_view(store, queue)
    blocks = view.blocks.reader_of(view.reads)
    info = read_item(view, blocks, Found(of, ItemId(item_id), of.run.at + position))
    attempts = _attempts(store, queue, item_id) if info.attempts else []
    return FoundItem(item_id, state, info, attempts, lease)


def _place(
    store: Store, queue: QueueState, item_id: bytes
) -> tuple[ItemState, FoundRun, LeaseInfo | None] | None:
    letter = queue.dead_letters.find(item_id)
    if letter is not None:
        died_at_ms, reason, run = letter
        return ItemState.DEAD, FoundRun(run, died_at_ms, b"", reason=DeathReason(reason)), None
    waiting = find_waiting(store, queue, queue.counters, item_id)
    if waiting is not None:
        level, (due, run) = waiting
        state = ItemState.DELAYED if level is None else ItemState.READY
        return state, FoundRun(run, split_due_part(due)[0], b""), None
    for _, lease_id in queue.leases.find([item_id]):
        ((expires_at_ms, runs),) = queue.leases.read([lease_id])
        items, polled_at_ms = count_items(runs), made_at_ms(ItemId(lease_id))
        lease = LeaseInfo(lease_id, "", items, expires_at_ms, polled_at_ms)
        for run in runs:
            if run.position_of(item_id) is not None:
                return ItemState.LEASED, FoundRun(run, expires_at_ms, b"", lease_id), lease
    return None


def _attempts(store: Store, queue: QueueState, item_id: bytes) -> list[Attempt]:
    stored = store.get(Family.ATTEMPTS, queue.prefix + item_id)
    if stored is None:
        return []
    times_ms, last = decode_attempts(stored)
    last = last[-len(times_ms) :]
    unknown = [Failed(None, "")] * (len(times_ms) - len(last))
    told = zip(times_ms, [*unknown, *last], strict=True)
    return [Attempt(at_ms, failed.end, failed.error) for at_ms, failed in told]


# --- among the results ----------------------------------------------------------------------------


def _first_since(reads: Reads, log: Log, since_ms: int) -> int:
    """The first offset of the blocks that were appended since then; a seek a step."""
    low, high = log.head.first_offset, log.head.next_offset
    while low < high:
        block = block_at(reads, log.prefix, (low + high) // 2)
        if block.appended_at_ms < since_ms:
            low = block.end_offset
        else:
            high = block.first_offset
    return low


def _in_results(reads: Reads, log: Log, item_id: bytes, offset: int) -> tuple[Result | None, int]:
    """The result of the item, or where to go on; 0: there is none from the offset on."""
    head = log.head
    at = max(offset, head.first_offset)
    results_left, bytes_left = READ_LOOKED_AT_MAX, _BYTES_MAX
    start, stop = block_key(log.prefix, at), block_key(log.prefix, head.next_offset)
    for key, value in reads.walk(Family.LOG_BLOCKS, start, stop):
        if results_left <= 0 or bytes_left <= 0:
            return None, at
        block = decode_block(key, value)
        # Most blocks do not have it: to search their bytes is much faster than to read their rows.
        if item_id in value:
            for here, row in enumerate(block.all_rows(), block.first_offset):
                if row[:ID_BYTES] == item_id and here >= head.first_offset:
                    return decode_row(here, row, block.appended_at_ms), 0
        at = block.end_offset
        results_left -= at - block.first_offset
        bytes_left -= len(value)
    return None, 0
