"""Remove: the work is done. Delete the item, with all that is stored of it."""

from collections.abc import Sequence
from itertools import chain

from queueber.db.families import Family
from queueber.db.records.runs import Run, count_items, mark_attempts, mark_has_options
from queueber.engine.queue.changes import Change, gone
from queueber.engine.queue.isolation import end_quarantine
from queueber.engine.queue.lifecycle import State
from queueber.engine.queue.options import drop_options
from queueber.engine.queue.queue_state import QueueTx
from queueber.engine.records.batches import Side
from queueber.engine.records.waits import items_ended, stop_waiting


def remove(tx: QueueTx, ids: Sequence[bytes], leases: Sequence[bytes]) -> list[bool]:
    """For each id, whether its lease held it and it is now gone; `leases` has one for each."""
    taken = tx.queue.leases.take(tx, ids, leases)
    _remove(tx, taken.runs)
    return taken.held


def remove_whole(tx: QueueTx, leases: Sequence[bytes], counts: Sequence[int]) -> list[bool]:
    """For each lease, whether it held as many items as its count says; these are now gone."""
    taken = tx.queue.leases.take_whole(tx, leases, counts)
    _remove(tx, list(chain.from_iterable(taken)))
    return [bool(runs) for runs in taken]


def _remove(tx: QueueTx, runs: Sequence[Run]) -> None:
    """Delete items that were taken out of their leases."""
    if runs:
        if tx.queue.changes is not None:
            tx.queue.changes.moved(tx, gone(Change.REMOVED, runs, State.LEASED))
        finish(tx, runs, Side.DONE)
        tx.counters.removed_total += count_items(runs)


def finish(tx: QueueTx, runs: Sequence[Run], side: Side | None) -> None:
    """Delete items that were taken out of their lease or index.

    `side` is how their batches count them; None if the batches have counted them before.
    """
    tx.queue.blocks.drop(tx, runs)
    tx.counters.contents_bytes -= sum([run.size for run in runs])
    for run in runs:
        if mark_attempts(run.mark):
            tx.batch.delete_many(Family.ATTEMPTS, [tx.prefix + item_id for item_id in run.ids])
        if mark_has_options(run.mark):
            drop_options(tx, run)
    if tx.counters.waiting and side is not None:
        if side is Side.DEAD:
            stop_waiting(tx, runs)
        items_ended(tx, runs, is_done=side is Side.DONE)
    if side is not None:  # dead letters are not quarantined any more
        end_quarantine(tx, runs)
        tx.queue.batches.count_ended(tx, runs, side)
