"""Finish: delete items for good, with all that is stored of them."""

from collections.abc import Sequence

from queueber.db.families import Family
from queueber.db.records.keys import HeldItem, is_plain, mark_attempts, mark_size
from queueber.engine.queue.isolation import end_quarantine
from queueber.engine.queue.queue_state import QueueTx
from queueber.engine.records.batches import Side


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
