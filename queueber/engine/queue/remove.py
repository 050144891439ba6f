"""Remove: the work is done. Delete the item, with all that is stored of it."""

from collections.abc import Sequence
from itertools import chain

from queueber.db.families import Family
from queueber.db.records.keys import HeldItem, is_plain, mark_attempts, mark_size
from queueber.engine.queue.isolation import end_quarantine
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


def finish(tx: QueueTx, items: Sequence[HeldItem], side: Side | None) -> None:
    """Delete items that were taken out of their lease or index.

    `side` is how their batches count them; None if the batches have counted them before.
    """
    prefix = tx.prefix
    tx.batch.delete_many(Family.ITEMS, [prefix + item_id for item_id, _ in items])
    marks = [mark for _, mark in items]
    sizes = {mark: mark_size(mark) for mark in set(marks)}
    tx.counters.contents_bytes -= sum([sizes[mark] for mark in marks])
    if not all(map(is_plain, sizes)):
        special = [item for item in items if not is_plain(item[1])]
        failed = [prefix + item_id for item_id, mark in special if mark_attempts(mark)]
        tx.batch.delete_many(Family.ATTEMPTS, failed)
        if side is not None:  # dead letters are not quarantined any more
            end_quarantine(tx, special)
            tx.queue.batches.count_ended(tx, special, side)
