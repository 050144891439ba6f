"""Finish: an item goes for good, and with it all that is kept of it."""

from collections.abc import Sequence

from queueber.db.families import Family
from queueber.db.records.marks import is_plain, mark_attempts, mark_size
from queueber.engine.queue.isolation import end_quarantine
from queueber.engine.queue.queue_state import QueueTx
from queueber.engine.records.batches import Side


def finish(tx: QueueTx, items: Sequence[tuple[bytes, bytes]], side: Side | None) -> None:
    """Items, given as id and mark, that are nowhere any more are gone.

    `side` is how they count in their batches; None when they have been counted before.
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
        if side is not None:  # the dead are not quarantined any more
            end_quarantine(tx, special)
            tx.queue.batches.count_ended(tx, special, side)
