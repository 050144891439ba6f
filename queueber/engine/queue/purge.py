"""Purge: delete all items of a state, a slice at a time. As with `cancel`, batches count them as
dead."""

from collections.abc import Callable, Sequence

from queueber.db.families import Family
from queueber.db.records.cutting import cut
from queueber.db.records.keys import PREFIX_BYTES, TIME_BYTES, prefix_end, time_part
from queueber.db.records.runs import Entry, Run, at_time_of, count_items, decode_entry
from queueber.engine.caps.key_changes import leave_ready
from queueber.engine.queue.changes import Change, gone
from queueber.engine.queue.lifecycle import State
from queueber.engine.queue.peek import find_held
from queueber.engine.queue.places import put_delayed, take_delayed
from queueber.engine.queue.queue_state import QueueTx, live_view
from queueber.engine.queue.remove import finish
from queueber.engine.records.batches import Side
from queueber.model import ItemState


def purge(tx: QueueTx, state: ItemState, limit: int) -> tuple[int, bool]:
    """Purge up to `limit` items of the state; returns how many, and whether there are more."""
    runs = _TAKE[state](tx, limit)
    if runs:
        if tx.queue.changes is not None:
            tx.queue.changes.moved(tx, gone(Change.PURGED, runs, State(state.value)))
        finish(tx, runs, None if state is ItemState.DEAD else Side.DEAD)
        tx.counters.cancelled_total += count_items(runs)
    left: int = getattr(tx.counters, state.value)
    return count_items(runs), left > 0


def _take_ready(tx: QueueTx, limit: int) -> list[Run]:
    if not tx.counters.levels:
        return []
    level = min(tx.counters.levels)
    entries = tx.queue.ready.first(tx.counters, level, limit)
    runs, rest = _first(tx, entries, limit)
    tx.queue.ready.take_first(tx, level, entries, rest)
    for (due, _), run in zip(entries, runs, strict=True):
        leave_ready(tx, due, [run])
    tx.after_write(tx.queue.blocks.forget_recent)
    return runs


def _take_delayed(tx: QueueTx, limit: int) -> list[Run]:
    start = tx.prefix + time_part(tx.counters.delayed_due_ms)
    found = tx.store.scan(Family.DELAYED, start, prefix_end(tx.prefix), limit)
    entries: list[Entry] = []
    items = 0
    for key, value in found:
        if items >= limit:
            break
        entries.append(decode_entry(key[PREFIX_BYTES:], value))
        items += entries[-1][1].count
    if not entries:
        return []
    runs, rest = _first(tx, entries, limit)
    take_delayed(tx, entries)
    tx.counters.delayed_due_ms = int.from_bytes(entries[-1][0][:TIME_BYTES])
    if rest is not None:
        put_delayed(tx, [at_time_of(entries[-1][0], rest)])
    return runs


def _first(tx: QueueTx, entries: Sequence[Entry], limit: int) -> tuple[list[Run], Run | None]:
    """The first `limit` items of entries, of which only the last has too many; and its rest."""
    runs = [run for _, run in entries]
    too_many = count_items(runs) - limit
    if too_many <= 0:
        return runs, None
    last = runs[-1]
    sizes = tx.queue.blocks.reader().sizes(last)
    runs[-1], rest = cut(last, last.count - too_many, sizes)
    return runs, rest


def _take_leased(tx: QueueTx, limit: int) -> list[Run]:
    found = find_held(live_view(tx.store, tx.queue), b"", limit)
    return tx.queue.leases.take_from_any(tx, [(each.item_id, each.lease_id) for each in found])


def _take_dead(tx: QueueTx, limit: int) -> list[Run]:
    return tx.queue.dead_letters.take_first(tx, limit)


_TAKE: dict[ItemState, Callable[[QueueTx, int], list[Run]]] = {
    ItemState.READY: _take_ready,
    ItemState.DELAYED: _take_delayed,
    ItemState.LEASED: _take_leased,
    ItemState.DEAD: _take_dead,
}
