"""Promote: delayed items become ready when their time has come."""

from queueber.db.families import Family
from queueber.db.records.keys import PREFIX_BYTES
from queueber.db.records.runs import count_items, decode_entry, run_count
from queueber.engine.kernel.due_scan import Done, read_due
from queueber.engine.queue.places import take_delayed
from queueber.engine.queue.queue_state import QueueTx


def promote(tx: QueueTx, runs_max: int) -> Done:
    """Make the items of up to `runs_max` due runs ready."""
    counters = tx.counters
    due, counters.delayed_due_ms, look_again_ms = read_due(
        tx,
        Family.DELAYED,
        low_ms=counters.delayed_due_ms,
        limit=runs_max,
        total=counters.delayed,
        count=run_count,
    )
    # An entry keeps its time, so items are polled in the order in which they became visible.
    entries = [decode_entry(key[PREFIX_BYTES:], value) for key, value in due]
    if entries:
        take_delayed(tx, entries, stay_placed=True)
        tx.queue.ready.put(tx, entries, is_placed=True)
    return Done(count_items([run for _, run in entries]), look_again_ms)
