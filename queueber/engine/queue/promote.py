"""Promote: delayed items become ready when their time has come."""

from typing import cast

from queueber.db.families import Family
from queueber.db.records.keys import PREFIX_BYTES, Entry
from queueber.engine.kernel.due_scan import Done, read_due
from queueber.engine.queue.places import take_delayed
from queueber.engine.queue.queue_state import QueueTx


def promote(tx: QueueTx, items_max: int) -> Done:
    """Make up to `items_max` due items ready."""
    counters = tx.counters
    due, counters.delayed_due_ms, look_again_ms = read_due(
        tx,
        Family.DELAYED,
        low_ms=counters.delayed_due_ms,
        limit=items_max,
        total=counters.delayed,
    )
    if due:
        # An entry keeps its time, so items are polled in the order in which they became visible.
        entries = cast("list[Entry]", [(key[PREFIX_BYTES:], mark) for key, mark in due])
        take_delayed(tx, entries, stay_placed=True)
        tx.queue.ready.put(tx, entries, is_placed=True)
    return Done(len(due), look_again_ms)
