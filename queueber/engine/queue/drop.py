"""Drop dead letters that the queue has kept for as long as its settings say.

Their batches have counted them as dead before, and still do.
"""

from queueber.db.records.runs import count_items
from queueber.engine.kernel.due_scan import Done
from queueber.engine.queue.changes import Change, gone
from queueber.engine.queue.lifecycle import State
from queueber.engine.queue.queue_state import QueueTx
from queueber.engine.queue.remove import finish


def drop(tx: QueueTx, items_max: int) -> Done:
    """Look at a slice of the dead letters, and delete those that died too long ago."""
    runs = tx.queue.dead_letters.take_old(tx, tx.queue.settings.dead_age_ms, items_max)
    if runs:
        if tx.queue.changes is not None:
            tx.queue.changes.moved(tx, gone(Change.PURGED, runs, State.DEAD))
        finish(tx, runs, None)
        tx.counters.dead_dropped_total += count_items(runs)
    return Done(count_items(runs))
