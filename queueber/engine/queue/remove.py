"""Remove: the work is done, the item goes."""

from collections.abc import Sequence
from itertools import chain

from queueber.engine.queue.finish import finish
from queueber.engine.queue.queue_state import QueueTx
from queueber.engine.records.batches import Side


def remove(tx: QueueTx, ids: Sequence[bytes], leases: Sequence[bytes]) -> list[bool]:
    """For each id, whether its lease held it and it is now gone; `leases` has one for each."""
    marks = tx.queue.leases.take(tx, ids, leases)
    _remove(tx, [(i, mark) for i, mark in zip(ids, marks, strict=True) if mark is not None])
    return [mark is not None for mark in marks]


def remove_whole(tx: QueueTx, leases: Sequence[bytes], counts: Sequence[int]) -> list[bool]:
    """For each lease, whether it held as many items as its count says and they are now gone."""
    taken = tx.queue.leases.take_whole(tx, leases, counts)
    _remove(tx, list(chain.from_iterable(taken)))
    return [bool(items) for items in taken]


def _remove(tx: QueueTx, items: Sequence[tuple[bytes, bytes]]) -> None:
    """Items, given as id and mark, that are out of their leases."""
    if items:
        finish(tx, items, Side.DONE)
        tx.counters.removed_total += len(items)
