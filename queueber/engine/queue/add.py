"""Add: store items, ready at once or after a delay of their own."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise

from queueber.db.families import Family
from queueber.db.records.blocks import NewBlock, make_blocks
from queueber.db.records.keys import AWAITING_MS, is_where_its_id_says
from queueber.db.records.new_runs import new_runs
from queueber.db.records.runs import Entry, entry_at
from queueber.engine.queue.after import NOTHING, awaited
from queueber.engine.queue.options import put_options
from queueber.engine.queue.places import put_delayed
from queueber.engine.queue.queue_state import QueueState, QueueTx
from queueber.errors import FailedPrecondition, ResourceExhausted
from queueber.ids import ItemId, range_end, range_id, shifted
from queueber.model import Added, IdRuns, NewItems, largest_size


def add(tx: QueueTx, items: NewItems) -> Added:
    """Store all of the items, or none; an item whose key is known already is not stored again."""
    if tx.queue.undelivered is not None:
        raise FailedPrecondition(
            f"{tx.queue.name!r} is a group, which has the messages of its topic; publish to that"
        )
    call = None
    if items.producer is not None:
        call = tx.queue.producers.call(tx, items.producer, items.contents)
        if call.repeated is not None:
            return call.repeated
    if items.keys and any(items.keys):
        added = _add_with_keys(tx, items)
    else:
        added = Added(_store(tx, items, range(len(items.contents))))
    if call is not None:
        call.store(tx, added)
    return added


def _add_with_keys(tx: QueueTx, items: NewItems) -> Added:
    queue = tx.queue
    lookup = queue.keys.look_up(tx, items.keys, queue.settings.dedup_window_ms)
    new = [position for position, first in enumerate(lookup.firsts) if first is None]
    ids = [ItemId(b"")] * len(items.contents)
    if new:
        chosen = items if len(new) == len(ids) else _choose(items, new)
        stored = list(zip(new, _store(tx, chosen, new), strict=True))
        lookup.store(tx, stored)
        for position, item_id in stored:
            ids[position] = item_id
    elif items.batch:
        # The batch begins all the same, and is complete: whoever waits for it gets an answer.
        queue.batches.count_added(tx, queue.batches.open(tx, items.batch), ItemId(b""), 0)
    for position, first in enumerate(lookup.firsts):
        if first is not None:
            ids[position] = ids[first] if isinstance(first, int) else first
    duplicates = [first is not None for first in lookup.firsts]
    tx.counters.duplicates_total += sum(duplicates)
    return Added(ids, duplicates if any(duplicates) else ())


def _choose(items: NewItems, positions: list[int]) -> NewItems:
    """Only the items at these positions."""
    return NewItems(
        [items.contents[at] for at in positions],
        [items.delays_ms[at] for at in positions] if items.delays_ms else (),
        [items.priorities[at] for at in positions] if items.priorities else (),
        [items.keys[at] for at in positions] if items.keys else (),
        [items.attributes[at] for at in positions] if items.attributes else (),
        items.batch,
        origin=items.origin,
        after=items.after,
        after_batch=items.after_batch,
        options=[items.options[at] for at in positions] if items.options else (),
    )


def _store(tx: QueueTx, items: NewItems, positions: Sequence[int]) -> IdRuns:
    """`positions` are those of the items in the call."""
    queue, counters = tx.queue, tx.counters
    waits = awaited(tx, items) if items.after or items.after_batch else NOTHING
    batch = queue.batches.open(tx, items.batch) if items.batch else 0
    blocks = list(make_blocks(items, _breaks(positions) if items.origin else ()))
    size = blocks[-1].ends[-1]
    check_contents(queue, items.contents)
    check_quota(queue, len(items.contents), size)

    placed: list[tuple[ItemId, NewBlock]] = []
    for last, block in _with_ids(tx, items, positions, blocks):
        tx.batch.put(Family.ITEMS, tx.prefix + last, block.value)
        placed.append((last, block))
        if batch:
            queue.batches.count_added(tx, batch, last, block.stop - block.start)
    counters.contents_bytes += size
    counters.added_total += len(items.contents)
    _enter(tx, items, placed, batch, is_waiting=bool(waits.whats))
    ids = IdRuns([(last, block.stop - block.start) for last, block in placed])
    if waits.whats:
        waits.store(tx, ids, items.delays_ms)
    if items.options:
        put_options(tx, ids, items.options)
    if queue.changes is not None:
        if waits.whats:
            items = replace(items, delays_ms=[AWAITING_MS - tx.now_ms] * len(ids))
        queue.changes.added(tx, items, ids)
    return ids


def _breaks(positions: Sequence[int]) -> list[int]:
    """Where a position is not one more than the one before."""
    return [at for at, (a, b) in enumerate(pairwise(positions), 1) if b != a + 1]


def _with_ids(
    tx: QueueTx, items: NewItems, positions: Sequence[int], blocks: Sequence[NewBlock]
) -> Iterator[tuple[ItemId, NewBlock]]:
    """The blocks, each with the last of its ids, which are consecutive."""
    count = len(items.contents)
    if items.origin is None:
        last = tx.counters.last_id = tx.ids.mint_last(count, tx.now_ms)
        for block in blocks:
            yield shifted(last, block.stop - count), block
        return
    head = tx.ids.mint_range(tx.now_ms)
    tx.counters.last_id = range_end(head)
    for block in blocks:
        row = items.origin.row + positions[block.stop - 1]
        yield range_id(head, items.origin.partition, row), block


def _enter(
    tx: QueueTx,
    items: NewItems,
    placed: Sequence[tuple[ItemId, NewBlock]],
    batch: int,
    *,
    is_waiting: bool,
) -> None:
    """Put the items into the index of ready items, or among the delayed: those that wait for others
    at a time that never comes."""
    delays_ms = () if is_waiting else items.delays_ms
    ready: list[Entry] = []
    delayed: list[Entry] = []
    recent: list[tuple[ItemId, bytes, int]] = []
    for last, block in placed:
        ready_items = 0
        for delay_ms, run in new_runs(
            last, block, delays_ms, items.priorities, batch, items.options
        ):
            if is_waiting:
                delayed.append(entry_at(AWAITING_MS, run))
            elif delay_ms:
                delayed.append(entry_at(tx.now_ms + delay_ms, run))
            else:
                ready.append(entry_at(tx.now_ms, run))
                ready_items += run.count
        if ready_items:
            recent.append((last, block.value, ready_items))
    if delayed:
        put_delayed(tx, sorted(delayed))
    if ready:
        # All ids of a call have one time, so the first one says whether `places` needs entries.
        is_placed = is_where_its_id_says(ready[0][0])
        keep = partial(tx.queue.blocks.keep_recent, recent)
        tx.queue.ready.put(tx, ready, is_placed=is_placed, keep=keep)


def check_contents(queue: QueueState, contents: Sequence[bytes]) -> None:
    limit = queue.settings.item_bytes_max
    if limit and (largest := largest_size(contents)) > limit:
        raise ResourceExhausted(
            f"contents: an item has {largest} bytes; the limit of queue {queue.name!r} is {limit}"
        )


def check_quota(queue: QueueState, items: int, size: int) -> None:
    """`items` and `size` are the number and bytes of the items to be added."""
    settings, counters = queue.settings, queue.counters
    if settings.items_max and counters.items + items > settings.items_max:
        raise ResourceExhausted(
            f"queue {queue.name!r} holds {counters.items} items; {items} more would pass its "
            f"limit of {settings.items_max}"
        )
    if settings.bytes_max and counters.contents_bytes + size > settings.bytes_max:
        raise ResourceExhausted(
            f"queue {queue.name!r} holds {counters.contents_bytes} bytes; {size} more would "
            f"pass its limit of {settings.bytes_max}"
        )
