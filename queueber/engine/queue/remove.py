"""Remove: the work is done. Delete the item."""

from collections.abc import Sequence
from itertools import chain

from queueber.db.records.keys import HeldItem
from queueber.engine.queue.finish import finish
from queueber.engine.queue.leases import held_items
from queueber.engine.queue.queue_state import QueueTx
from queueber.engine.records.batches import Side


def remove(tx: QueueTx, ids: Sequence[bytes], leases: Sequence[bytes]) -> list[bool]:
    """For each id, whether its lease held it and it is now gone; `leases` has one for each."""
    marks = tx.queue.leases.take(tx, ids, leases)
    _remove(tx, held_items(ids, marks))
    return [mark is not None for mark in marks]


def remove_whole(tx: QueueTx, leases: Sequence[bytes], counts: Sequence[int]) -> list[bool]:
    """For each lease, whether it held as many items as its count says; these are now gone."""
    taken = tx.queue.leases.take_whole(tx, leases, counts)
    _remove(tx, list(chain.from_iterable(taken)))
    return [bool(items) for items in taken]


def _remove(tx: QueueTx, items: Sequence[HeldItem]) -> None:
    """Delete items that were taken out of their leases."""
    if items:
        finish(tx, items, Side.DONE)
        tx.counters.removed_total += len(items)
