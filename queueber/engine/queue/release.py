"""Release: the holder gives items back at once. No attempt is charged."""

from collections.abc import Sequence

from queueber.db.records.keys import due_part
from queueber.db.records.leases import split_held
from queueber.engine.queue.queue_state import QueueTx


def release(tx: QueueTx, ids: Sequence[bytes], leases: Sequence[bytes]) -> list[bool]:
    """For each id, whether its lease held it and it is now ready; `leases` has one for each."""
    marks = tx.queue.leases.take(tx, ids, leases)
    _give_back(tx, [(i, mark) for i, mark in zip(ids, marks, strict=True) if mark is not None])
    return [mark is not None for mark in marks]


def release_lease(tx: QueueTx, lease_id: bytes) -> int:
    """Give back all that a lease holds, as if it had never been given; returns how many."""
    ((_, held),) = tx.queue.leases.read([lease_id])
    items = [(item_id, lease_id) for item_id, _ in split_held(held)]
    taken = tx.queue.leases.take_from_any(tx, items)
    _give_back(tx, taken)
    return len(taken)


def _give_back(tx: QueueTx, items: list[tuple[bytes, bytes]]) -> None:
    """Items, given as id and mark, that are out of their leases."""
    if items:
        entries = sorted((due_part(tx.now_ms, item_id), mark) for item_id, mark in items)
        tx.queue.ready.put(tx, entries)
        tx.counters.released_total += len(items)
