"""Sweep: do what is due because time has passed, one slice of one queue at a time."""

from queueber.db.records.keys import NEVER_MS
from queueber.engine.kernel.state import Engine, QueueState
from queueber.engine.log.trim import trim
from queueber.engine.queue.expire import expire
from queueber.engine.queue.pause import resume_if_due
from queueber.engine.queue.promote import promote
from queueber.engine.records.retention import forget
from queueber.limits import STORE_RETRY_MS, SWEEP_SLICE_ITEMS
from queueber.model import Sweep


def sweep(engine: Engine, now_ms: int, items_max: int = SWEEP_SLICE_ITEMS) -> Sweep | None:
    """Do a slice of what is due in the queue that is due first; None when none is due."""
    queue_id = engine.agenda.take_due(now_ms)
    if queue_id is None:
        return None
    return sweep_queue(engine, engine.by_id[queue_id], now_ms, items_max)


def sweep_queue(
    engine: Engine, queue: QueueState, now_ms: int, items_max: int = SWEEP_SLICE_ITEMS
) -> Sweep:
    """Do a slice of what is due in one queue."""
    engine.agenda.forget(queue.queue_id)
    look_again_ms = now_ms + STORE_RETRY_MS  # should the store refuse a write below
    try:
        expired, leases_ms = expire(engine, queue, now_ms, items_max)
        promoted, delayed_ms = promote(engine, queue, now_ms, items_max)
        _, forget_ms = forget(engine, queue, now_ms, items_max)
        resumed = resume_if_due(engine, queue, now_ms)
        if queue.results_due_ms(now_ms) <= now_ms:
            settings = queue.settings
            trim(
                engine.store,
                queue.results,
                now_ms,
                age_ms=settings.result_age_ms,
                bytes_max=settings.result_bytes_max,
            )
        look_again_ms = min(
            leases_ms,
            delayed_ms,
            forget_ms,
            queue.paused_until_ms or NEVER_MS,
            queue.results_due_ms(now_ms),
        )
    finally:
        if look_again_ms < NEVER_MS:
            engine.agenda.schedule(queue.queue_id, look_again_ms)
    return Sweep(queue.name, expired, promoted, resumed)
