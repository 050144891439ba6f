"""Sweep: do the work that is due by now, one slice of one queue at a time."""

from queueber.engine.kernel.duties import Done, Duties, Duty
from queueber.engine.kernel.kernel import Kernel
from queueber.engine.log import trim
from queueber.engine.queue.expire import expire
from queueber.engine.queue.pause import resume_due, resume_due_ms
from queueber.engine.queue.promote import promote
from queueber.engine.queue.queue_state import QueueState, QueueTx
from queueber.engine.queue.queues import Queues
from queueber.limits import STORE_RETRY_MS, SWEEP_SLICE_ITEMS
from queueber.model import Sweep


def _trim(tx: QueueTx, _: int) -> Done:
    s = tx.queue.settings
    return Done(trim(tx, tx.queue.results, age_ms=s.result_age_ms, bytes_max=s.result_bytes_max))


DUTIES: Duties[QueueState] = Duties(
    [
        Duty("expire", lambda queue, _: queue.counters.lease_due_ms, expire),
        Duty("promote", lambda queue, _: queue.counters.delayed_due_ms, promote),
        Duty(
            "forget",
            lambda queue, _: queue.retention.due_ms(queue.counters.forget_due_ms),
            lambda tx, entries_max: tx.queue.retention.forget(tx, entries_max),
        ),
        Duty("resume", resume_due_ms, resume_due),
        Duty("trim", QueueState.results_due_ms, _trim),
    ]
)
"""The work that may become due in a queue, in the order in which a sweep does it."""


def sweep(
    kernel: Kernel, queues: Queues, now_ms: int, items_max: int = SWEEP_SLICE_ITEMS
) -> Sweep | None:
    """Do a slice of what is due in the queue that is due first; None when none is due."""
    queue_id = kernel.agenda.take_due(now_ms)
    if queue_id is None:
        return None
    return sweep_queue(kernel, queues.by_id[queue_id], now_ms, items_max)


def sweep_queue(
    kernel: Kernel, queue: QueueState, now_ms: int, items_max: int = SWEEP_SLICE_ITEMS
) -> Sweep:
    """Do a slice of what is due in one queue."""
    kernel.agenda.forget(queue.queue_id)
    try:
        moved = DUTIES.run(kernel, queue, now_ms, items_max)
    except BaseException:
        kernel.agenda.schedule(queue.queue_id, now_ms + STORE_RETRY_MS)
        raise
    return Sweep(
        queue.name, moved.get("expire", 0), moved.get("promote", 0), bool(moved.get("resume"))
    )
