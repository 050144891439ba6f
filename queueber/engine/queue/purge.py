"""Purge: delete all items of a state, a slice at a time. As with `cancel`, batches count them as
dead."""

from collections.abc import Callable
from typing import cast

from queueber.db.families import Family
from queueber.db.records.keys import (
    PREFIX_BYTES,
    TIME_BYTES,
    Entry,
    HeldItem,
    prefix_end,
    time_part,
)
from queueber.engine.queue.peek import find_held
from queueber.engine.queue.places import take_delayed
from queueber.engine.queue.queue_state import QueueTx, live_view
from queueber.engine.queue.remove import finish
from queueber.engine.records.batches import Side
from queueber.ids import ItemId, LeaseId
from queueber.limits import ID_BYTES
from queueber.model import ItemState


def purge(tx: QueueTx, state: ItemState, limit: int) -> tuple[int, bool]:
    """Purge up to `limit` items of the state; returns how many, and whether there are more."""
    items = _TAKE[state](tx, limit)
    if items:
        finish(tx, items, None if state is ItemState.DEAD else Side.DEAD)
        tx.counters.cancelled_total += len(items)
    left: int = getattr(tx.counters, state.value)
    return len(items), left > 0


def _take_ready(tx: QueueTx, limit: int) -> list[HeldItem]:
    if not tx.counters.levels:
        return []
    level = min(tx.counters.levels)
    entries = tx.queue.ready.first(tx.counters, level, limit)
    tx.queue.ready.take_first(tx, level, entries)
    tx.after_write(tx.queue.ready.forget_contents)
    return _items(entries)


def _take_delayed(tx: QueueTx, limit: int) -> list[HeldItem]:
    start = tx.prefix + time_part(tx.counters.delayed_due_ms)
    found = tx.store.scan(Family.DELAYED, start, prefix_end(tx.prefix), limit)
    entries = cast("list[Entry]", [(key[PREFIX_BYTES:], mark) for key, mark in found])
    if entries:
        take_delayed(tx, entries)
        tx.counters.delayed_due_ms = int.from_bytes(entries[-1][0][:TIME_BYTES])
    return _items(entries)


def _take_leased(tx: QueueTx, limit: int) -> list[HeldItem]:
    found = find_held(live_view(tx.store, tx.queue), b"", limit)
    held = [(ItemId(key[ID_BYTES:]), LeaseId(key[:ID_BYTES])) for key, _ in found]
    return tx.queue.leases.take_from_any(tx, held)


def _take_dead(tx: QueueTx, limit: int) -> list[HeldItem]:
    letters = tx.queue.dead_letters.first(limit)
    tx.queue.dead_letters.drop(tx, letters, are_first=True)
    return letters


def _items(entries: list[Entry]) -> list[HeldItem]:
    return cast("list[HeldItem]", [(due[TIME_BYTES:], mark) for due, mark in entries])


_TAKE: dict[ItemState, Callable[[QueueTx, int], list[HeldItem]]] = {
    ItemState.READY: _take_ready,
    ItemState.DELAYED: _take_delayed,
    ItemState.LEASED: _take_leased,
    ItemState.DEAD: _take_dead,
}
