"""Add: store items, ready at once or after a delay of their own."""

from collections.abc import Sequence

from queueber.db.families import Family
from queueber.db.records.keys import is_where_its_id_says, time_part
from queueber.db.records.new_items import describe
from queueber.engine.kernel.state import Engine, QueueState
from queueber.engine.kernel.transaction import Change
from queueber.engine.loads.loads import staging_load
from queueber.engine.queue.quota import check_contents, check_room
from queueber.engine.queue.ready_window import Entry
from queueber.engine.records.batches import count_added, open_batch
from queueber.engine.records.dedup_keys import Keys
from queueber.engine.records.producers import ProducerTurn
from queueber.ids import range_end, range_id
from queueber.limits import PRIORITY_DEFAULT, PRIORITY_MAX
from queueber.model import Added, NewItems, Origin

_DEFAULT_LEVEL = PRIORITY_MAX - PRIORITY_DEFAULT


def add(engine: Engine, queue: QueueState, items: NewItems, now_ms: int) -> Added:
    """Store all of the items, or none, but for those whose key is there already."""
    turn = None
    if items.producer is not None:
        turn = ProducerTurn(engine, queue, items.producer, items.contents)
        if turn.repeated is not None:
            return turn.repeated
    if items.keys and any(items.keys):
        return _add_with_keys(engine, queue, items, turn, now_ms)

    change = Change(engine, queue)
    ids = _store(engine, queue, change, items, range(len(items.contents)), now_ms)
    added = Added(ids)
    if turn is not None:
        turn.store(change, added, now_ms)
    change.commit()
    return added


def _add_with_keys(
    engine: Engine, queue: QueueState, items: NewItems, turn: ProducerTurn | None, now_ms: int
) -> Added:
    keys = Keys(engine, queue, items.keys, now_ms)
    fresh = [place for place, first in enumerate(keys.firsts) if first is None]
    change = Change(engine, queue)
    ids: list[bytes] = [b""] * len(items.contents)
    if fresh:
        chosen = items if len(fresh) == len(ids) else _choose(items, fresh)
        stored = list(zip(fresh, _store(engine, queue, change, chosen, fresh, now_ms), strict=True))
        keys.store(change, stored)
        for place, item_id in stored:
            ids[place] = item_id
    elif items.batch:
        # It begins all the same, and is complete: whoever waits for it has its answer.
        count_added(queue, change, open_batch(engine, queue, change, items.batch), (), now_ms)
    for place, first in enumerate(keys.firsts):
        if first is not None:
            ids[place] = ids[first] if isinstance(first, int) else first
    duplicates = [first is not None for first in keys.firsts]
    change.counters.duplicates_total += sum(duplicates)
    added = Added(ids, duplicates if any(duplicates) else ())
    if turn is not None:
        turn.store(change, added, now_ms)
    change.commit()
    return added


def _choose(items: NewItems, places: list[int]) -> NewItems:
    """Only the items at these places."""
    return NewItems(
        [items.contents[place] for place in places],
        [items.delays_ms[place] for place in places] if items.delays_ms else (),
        [items.priorities[place] for place in places] if items.priorities else (),
        [items.keys[place] for place in places] if items.keys else (),
        [items.attributes[place] for place in places] if items.attributes else (),
        items.batch,
        origin=items.origin,
    )


def _store(
    engine: Engine,
    queue: QueueState,
    change: Change,
    items: NewItems,
    places: Sequence[int],
    now_ms: int,
) -> list[bytes]:
    """`places` says where in the call each of the items stood."""
    contents = items.contents
    batch_number = open_batch(engine, queue, change, items.batch) if items.batch else 0
    sizes, marks, records = describe(items, batch_number)
    check_contents(queue, contents)
    check_room(queue, len(sizes), sum(sizes))

    if items.origin is None:
        ids = engine.ids.mint(len(contents), now_ms)
        change.counters.last_id = ids[-1]
    else:
        ids = _ids_of_origin(engine, queue, change, items.origin, places, now_ms)
    prefix, counters = queue.prefix, change.counters
    change.batch.put_columns(Family.ITEMS, [prefix + item_id for item_id in ids], records)
    counters.contents_bytes += sum(sizes)
    counters.added_total += len(ids)
    if batch_number:
        count_added(queue, change, batch_number, ids, now_ms)
    _place(change, items, ids, marks, now_ms)
    if not (items.delays_ms or items.keys or items.attributes):
        change.keep_fresh(ids, contents)
    return ids


def _place(
    change: Change, items: NewItems, ids: list[bytes], marks: list[bytes], now_ms: int
) -> None:
    now = time_part(now_ms)
    if any(items.delays_ms):
        ready: list[Entry] = []
        delayed: list[Entry] = []
        for item_id, mark, delay_ms in zip(ids, marks, items.delays_ms, strict=True):
            if delay_ms:
                delayed.append((time_part(now_ms + delay_ms) + item_id, mark))
            else:
                ready.append((now + item_id, mark))
        change.make_delayed(delayed)
    else:
        ready = [(now + i, mark) for i, mark in zip(ids, marks, strict=True)]
    if not ready:
        return
    # Ids of one call have one time, so that one of them tells whether places must have them.
    is_placed = is_where_its_id_says(ready[0][0])
    if items.priorities:
        change.make_ready(ready, is_placed=is_placed)
    else:
        change.make_ready_at(_DEFAULT_LEVEL, ready, is_placed=is_placed)


def _ids_of_origin(
    engine: Engine,
    queue: QueueState,
    change: Change,
    origin: Origin,
    places: Sequence[int],
    now_ms: int,
) -> list[bytes]:
    """Ids that tell where the items come from; none for who comes after the end of the load."""
    staging_load(queue, origin.load, now_ms)
    head = engine.ids.mint_range(now_ms)
    change.counters.last_id = range_end(head)
    return [range_id(head, origin.partition, origin.row + place) for place in places]
