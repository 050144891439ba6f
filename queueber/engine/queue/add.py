"""Add: store items, ready at once or after a delay of their own."""

from collections.abc import Sequence
from typing import cast

from queueber.db.families import Family
from queueber.db.records.items import describe
from queueber.db.records.keys import Entry, Mark, due_part, is_where_its_id_says, time_part
from queueber.engine.queue.places import put_delayed
from queueber.engine.queue.queue_state import QueueState, QueueTx
from queueber.errors import ResourceExhausted
from queueber.ids import ItemId, range_end, range_id
from queueber.limits import PRIORITY_DEFAULT, PRIORITY_MAX
from queueber.model import Added, NewItems, Origin

_DEFAULT_LEVEL = PRIORITY_MAX - PRIORITY_DEFAULT


def add(tx: QueueTx, items: NewItems) -> Added:
    """Store all of the items, or none; an item whose key is known already is not stored again."""
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
        queue.batches.count_added(tx, queue.batches.open(tx, items.batch), ())
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
    )


def _store(tx: QueueTx, items: NewItems, positions: Sequence[int]) -> list[ItemId]:
    """`positions` are those of the items in the call."""
    queue, contents, counters = tx.queue, items.contents, tx.counters
    batch_number = queue.batches.open(tx, items.batch) if items.batch else 0
    sizes, marks, records = describe(items, batch_number)
    check_contents(queue, contents)
    check_quota(queue, len(sizes), sum(sizes))

    if items.origin is None:
        ids = tx.ids.mint(len(contents), tx.now_ms)
        counters.last_id = ids[-1]
    else:
        ids = _ids_of_origin(tx, items.origin, positions)
    prefix = tx.prefix
    tx.batch.put_columns(Family.ITEMS, [prefix + item_id for item_id in ids], records)
    counters.contents_bytes += sum(sizes)
    counters.added_total += len(ids)
    if batch_number:
        queue.batches.count_added(tx, batch_number, ids)
    _enter(tx, items, ids, marks)
    return ids


def _enter(tx: QueueTx, items: NewItems, ids: list[ItemId], marks: list[Mark]) -> None:
    """Put the items into the index of ready items, or among the delayed."""
    now, ready_index = time_part(tx.now_ms), tx.queue.ready
    if any(items.delays_ms):
        ready: list[Entry] = []
        delayed: list[Entry] = []
        for item_id, mark, delay_ms in zip(ids, marks, items.delays_ms, strict=True):
            if delay_ms:
                delayed.append((due_part(tx.now_ms + delay_ms, item_id), mark))
            else:
                ready.append((now + item_id, mark))  # type: ignore[arg-type]  # see due_part
        put_delayed(tx, delayed)
        if not ready:
            return
    else:
        ready = cast("list[Entry]", [(now + i, mark) for i, mark in zip(ids, marks, strict=True)])
    # All ids of a call have one time, so the first one says whether `places` needs entries.
    is_placed = is_where_its_id_says(ready[0][0])
    is_plain = not (items.delays_ms or items.keys or items.attributes)
    contents = (ids, items.contents) if is_plain else None
    if items.priorities:
        ready_index.put(tx, ready, is_placed=is_placed, contents=contents)
    else:
        levels = [(_DEFAULT_LEVEL, ready)]
        ready_index.put_levels(tx, levels, is_placed=is_placed, contents=contents)


def _ids_of_origin(tx: QueueTx, origin: Origin, positions: Sequence[int]) -> list[ItemId]:
    """Ids that contain the partition and row of the items."""
    head = tx.ids.mint_range(tx.now_ms)
    tx.counters.last_id = range_end(head)
    return [range_id(head, origin.partition, origin.row + at) for at in positions]


def check_contents(queue: QueueState, contents: Sequence[bytes]) -> None:
    limit = queue.settings.item_bytes_max
    if limit and max(map(len, contents)) > limit:
        raise ResourceExhausted(
            f"contents: an item has {max(map(len, contents))} bytes; the limit of queue "
            f"{queue.name!r} is {limit}"
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
