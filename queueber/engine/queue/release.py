"""Release: the holder gives items back at once. No attempt is counted."""

from collections.abc import Sequence

from queueber.db.records.items import split_held
from queueber.db.records.keys import HeldItem, due_part
from queueber.engine.queue.leases import held_items
from queueber.engine.queue.queue_state import QueueTx


def release(tx: QueueTx, ids: Sequence[bytes], leases: Sequence[bytes]) -> list[bool]:
    """For each id, whether its lease held it and it is now ready; `leases` has one for each."""
    marks = tx.queue.leases.take(tx, ids, leases)
    _give_back(tx, held_items(ids, marks))
    return [mark is not None for mark in marks]


def release_lease(tx: QueueTx, lease_id: bytes) -> int:
    """Give back all items that a lease holds, as if nobody had polled them; returns how many."""
    ((expires_at_ms, held),) = tx.queue.leases.read([lease_id])
    items = split_held(held)
    if items:
        tx.queue.leases.end(tx, [(due_part(expires_at_ms, lease_id), items)])
        _give_back(tx, items)
    return len(items)


def _give_back(tx: QueueTx, items: list[HeldItem]) -> None:
    """Make items ready that were taken out of their leases."""
    if items:
        entries = sorted((due_part(tx.now_ms, item_id), mark) for item_id, mark in items)
        tx.queue.ready.put(tx, entries)
        tx.counters.released_total += len(items)
