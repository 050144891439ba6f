"""Promote: delayed items whose time has come are ready."""

from queueber.db.families import Family
from queueber.db.keys import NEVER_MS, PREFIX_BYTES, due_upper_bound, split_due_part, time_part
from queueber.db.records import decode_size
from queueber.engine.lookahead import look_ahead
from queueber.engine.state import Engine, QueueState


def promote(engine: Engine, queue: QueueState, now_ms: int, items_max: int) -> tuple[int, int]:
    """Make up to `items_max` due items ready. Returns how many, and when to look again."""
    if queue.counters.delayed_due_ms > now_ms:
        return 0, queue.counters.delayed_due_ms
    prefix = queue.prefix
    due = engine.store.scan(
        Family.DELAYED,
        prefix + time_part(queue.counters.delayed_due_ms),
        due_upper_bound(prefix, now_ms),
        items_max,
    )
    if len(due) == items_max:
        low_ms = look_again_ms = split_due_part(due[-1][0][PREFIX_BYTES:])[0]
    elif len(due) == queue.counters.delayed:
        low_ms = look_again_ms = NEVER_MS
    else:
        low_ms, look_again_ms = look_ahead(engine.store, Family.DELAYED, prefix, now_ms)
    if not due:
        # Known in memory only: it is written with the next change, and found again after a restart.
        queue.counters.delayed_due_ms = low_ms
        return 0, look_again_ms

    # The entry keeps its time, so items are polled in the order in which they became visible.
    change = engine.change(queue)
    change.batch.delete_many(Family.DELAYED, [key for key, _ in due])
    change.batch.put_many(Family.VISIBILITY_INDEX, due)
    counters = change.counters
    counters.ready += len(due)
    counters.delayed -= len(due)
    counters.delayed_due_ms = low_ms
    counters.ready_low = min(counters.ready_low, due[0][0][PREFIX_BYTES:])
    change.commit()
    queue.window.insert([(key[PREFIX_BYTES:], decode_size(size)) for key, size in due])
    return len(due), look_again_ms
