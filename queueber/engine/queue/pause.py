"""Pause: polls of a queue get nothing, for a while or until `resume`. Other calls work as usual."""

from queueber.db.records.keys import NEVER_MS
from queueber.engine.kernel.due_scan import Done
from queueber.engine.queue.queue_state import QueueTx


def pause(tx: QueueTx, for_ms: int) -> None:
    """Serve no poll for `for_ms`; 0: until `resume`."""
    until_ms = tx.now_ms + for_ms if for_ms else NEVER_MS
    tx.queue.write_record(tx, tx.queue.settings, until_ms)
    tx.due(until_ms)


def resume(tx: QueueTx) -> None:
    if tx.queue.paused_until_ms:
        tx.queue.write_record(tx, tx.queue.settings, 0)


def resume_due(tx: QueueTx, _: int) -> Done:
    """End a pause whose time is over."""
    resume(tx)
    return Done(1)
