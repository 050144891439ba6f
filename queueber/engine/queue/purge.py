"""Purge: a slice of all items of a state goes. As with `cancel`, they count as dead in batches."""

from collections.abc import Callable

from queueber.db.families import Family
from queueber.db.records.keys import PREFIX_BYTES, TIME_BYTES, prefix_end, time_part
from queueber.db.records.leases import decode_lease, split_held
from queueber.engine.kernel.state import Engine, QueueState
from queueber.engine.kernel.transaction import Change
from queueber.engine.queue.dead_letters import drop_dead, first_dead
from queueber.engine.queue.finish import finish
from queueber.engine.queue.leases import take_from_any_lease
from queueber.engine.queue.ready_window import Entry
from queueber.engine.records.batches import Side
from queueber.model import ItemState

Items = list[tuple[bytes, bytes]]
"""Ids and marks."""


def purge(
    engine: Engine, queue: QueueState, state: ItemState, limit: int, now_ms: int
) -> tuple[int, bool]:
    """Purge up to `limit` items of the state; returns how many, and whether there are more."""
    change = Change(engine, queue)
    items = _TAKE[state](engine, queue, change, limit)
    if items:
        finish(queue, change, items, None if state is ItemState.DEAD else Side.DEAD, now_ms)
        change.counters.cancelled_total += len(items)
        change.commit()
        if state is ItemState.DEAD:
            queue.dead_low = items[-1][0]
    counters = queue.counters
    left = {
        ItemState.READY: counters.ready,
        ItemState.DELAYED: counters.delayed,
        ItemState.LEASED: counters.leased,
        ItemState.DEAD: counters.dead,
    }
    return len(items), left[state] > 0


def _take_ready(engine: Engine, queue: QueueState, change: Change, limit: int) -> Items:
    if not queue.counters.levels:
        return []
    level = min(queue.counters.levels)
    entries = queue.first_ready(engine.store, level, limit)
    change.draw_ready(level, entries)
    engine.fresh.forget(queue.queue_id)
    return _items(entries)


def _take_delayed(engine: Engine, queue: QueueState, change: Change, limit: int) -> Items:
    prefix = queue.prefix
    start = prefix + time_part(queue.counters.delayed_due_ms)
    found = engine.store.scan(Family.DELAYED, start, prefix_end(prefix), limit)
    entries = [(key[PREFIX_BYTES:], mark) for key, mark in found]
    if entries:
        change.drop_delayed(entries)
        change.counters.delayed_due_ms = int.from_bytes(entries[-1][0][:TIME_BYTES])
    return _items(entries)


def _take_leased(engine: Engine, queue: QueueState, change: Change, limit: int) -> Items:
    prefix = queue.prefix
    held: list[tuple[bytes, bytes]] = []
    for key, value in engine.store.walk(Family.LEASES, prefix, prefix_end(prefix)):
        lease_id = key[PREFIX_BYTES:]
        held += [(item_id, lease_id) for item_id, _ in sorted(split_held(decode_lease(value)[1]))]
        if len(held) >= limit:
            break
    return take_from_any_lease(engine, queue, change, held[:limit])


def _take_dead(engine: Engine, queue: QueueState, change: Change, limit: int) -> Items:
    letters = first_dead(engine, queue, limit)
    drop_dead(queue, change, letters)
    return letters


def _items(entries: list[Entry]) -> Items:
    return [(due[TIME_BYTES:], mark) for due, mark in entries]


_TAKE: dict[ItemState, Callable[[Engine, QueueState, Change, int], Items]] = {
    ItemState.READY: _take_ready,
    ItemState.DELAYED: _take_delayed,
    ItemState.LEASED: _take_leased,
    ItemState.DEAD: _take_dead,
}
