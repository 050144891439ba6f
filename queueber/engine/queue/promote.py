"""Promote: delayed items whose time has come are ready."""

from queueber.db.families import Family
from queueber.db.records.keys import PREFIX_BYTES
from queueber.engine.kernel.due_scan import read_due
from queueber.engine.kernel.state import Engine, QueueState
from queueber.engine.kernel.transaction import Change


def promote(engine: Engine, queue: QueueState, now_ms: int, items_max: int) -> tuple[int, int]:
    """Make up to `items_max` due items ready. Returns how many, and when to look again."""
    if queue.counters.delayed_due_ms > now_ms:
        return 0, queue.counters.delayed_due_ms
    due, low_ms, look_again_ms = read_due(
        engine.store,
        Family.DELAYED,
        queue.prefix,
        low_ms=queue.counters.delayed_due_ms,
        now_ms=now_ms,
        limit=items_max,
        total=queue.counters.delayed,
    )
    if not due:
        # Known in memory only: it is written with the next change, and found again after a restart.
        queue.counters.delayed_due_ms = low_ms
        return 0, look_again_ms

    # An entry keeps its time, so items are polled in the order in which they became visible.
    entries = [(key[PREFIX_BYTES:], mark) for key, mark in due]
    change = Change(engine, queue)
    change.drop_delayed(entries, stay_placed=True)
    change.make_ready(entries, is_placed=True)
    change.counters.delayed_due_ms = low_ms
    change.commit()
    return len(due), look_again_ms
