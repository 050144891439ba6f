"""Sweep: do the work that is due by now, one slice of one queue at a time.

What becomes due because time passes is one table of duties, and nothing else knows which there are.
Opening a store and sweeping both read it: the sweeper looks at a queue at the earliest time of its
duties, and runs those that are due, a bounded slice of each in a transaction of its own.
"""

from collections.abc import Callable
from dataclasses import dataclass

from queueber.db.records.keys import NEVER_MS
from queueber.engine.caps.queue_caps import allow_by_rate
from queueber.engine.caps.review import look_at_tokens, review_caps, review_due_ms, tokens_due_ms
from queueber.engine.kernel.due_scan import Done
from queueber.engine.kernel.transaction import Kernel, Transaction
from queueber.engine.log import trim
from queueber.engine.queue.drop import drop
from queueber.engine.queue.expire import expire
from queueber.engine.queue.let_go import let_go, let_go_due_ms
from queueber.engine.queue.pause import resume_due
from queueber.engine.queue.promote import promote
from queueber.engine.queue.queue_state import QueueState, QueueTx
from queueber.engine.queue.queues import Queues
from queueber.engine.queue.unclaimed import expire_unclaimed
from queueber.limits import STORE_RETRY_MS, SWEEP_SLICE_ITEMS
from queueber.model import Sweep


@dataclass(frozen=True, slots=True)
class Duty:
    name: str
    due_ms: Callable[[QueueState, int], int]
    """When the duty is due next in a queue, given the time now; `NEVER_MS`: it is not."""
    run: Callable[[QueueTx, int], Done]
    """Do a slice of at most that many entries. Called only when the duty is due."""


def _trim(tx: QueueTx, _: int) -> Done:
    queue = tx.queue
    return Done(trim(tx, queue.results, queue.result_limits(queue.settings)))


def _lost_due_ms(queue: QueueState, now_ms: int) -> int:
    undelivered = queue.undelivered
    return NEVER_MS if undelivered is None or not undelivered.has_lost() else now_ms


def _drop_lost(tx: QueueTx, items_max: int) -> Done:
    """Only groups that share the messages of a topic lose some: see `Undelivered`."""
    undelivered = tx.queue.undelivered
    return Done(0) if undelivered is None else undelivered.drop_lost(tx, items_max)


def _schedules_due_ms(queue: QueueState, _: int) -> int:
    return NEVER_MS if queue.schedules is None else queue.schedules.due_ms()


def _run_schedule(tx: QueueTx, _: int) -> Done:
    return Done(0) if tx.queue.schedules is None else tx.queue.schedules.run_due(tx)


def _callbacks_due_ms(queue: QueueState, _: int) -> int:
    callbacks = queue.callbacks
    return callbacks.due_ms() if queue.counters.callbacks and callbacks else NEVER_MS


def _run_callbacks(tx: QueueTx, _: int) -> Done:
    return Done(0) if tx.queue.callbacks is None else tx.queue.callbacks.run_due(tx)


DUTIES = [
    Duty("expire unclaimed", lambda queue, _: queue.counters.expiry_due_ms, expire_unclaimed),
    Duty("expire", lambda queue, _: queue.counters.lease_due_ms, expire),
    Duty("drop lost", _lost_due_ms, _drop_lost),
    Duty("drop dead", QueueState.dead_due_ms, drop),
    Duty("promote", lambda queue, _: queue.counters.delayed_due_ms, promote),
    Duty(
        "forget",
        lambda queue, _: queue.retention.due_ms(queue.counters.forget_due_ms),
        lambda tx, entries_max: tx.queue.retention.forget(tx, entries_max),
    ),
    Duty("resume", lambda queue, _: queue.paused_until_ms or NEVER_MS, resume_due),
    Duty("schedules", _schedules_due_ms, _run_schedule),
    Duty("let go", let_go_due_ms, let_go),
    Duty("callbacks", _callbacks_due_ms, _run_callbacks),
    Duty("trim", QueueState.results_due_ms, _trim),
    Duty("review caps", review_due_ms, review_caps),
    Duty("let go by rate", tokens_due_ms, look_at_tokens),
    Duty("allow by rate", QueueState.rate_due_ms, allow_by_rate),
]
"""The work that may become due in a queue, in the order in which a sweep does it."""


def first_due_ms(queue: QueueState, now_ms: int) -> int:
    """When one of the duties is due next."""
    return min(duty.due_ms(queue, now_ms) for duty in DUTIES)


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
    """Do a slice of each duty that is due in one queue, and schedule the next look."""
    kernel.agenda.forget(queue.queue_id)
    moved: dict[str, int] = {}
    look_again_ms = NEVER_MS
    try:
        for duty in DUTIES:
            due_ms = duty.due_ms(queue, now_ms)
            if due_ms <= now_ms:
                tx = Transaction(kernel, now_ms, queue)
                done = duty.run(tx, items_max)
                tx.commit()
                moved[duty.name] = done.moved
                again_ms = done.look_again_ms
                due_ms = duty.due_ms(queue, now_ms) if again_ms is None else again_ms
            look_again_ms = min(look_again_ms, due_ms)
    except BaseException:
        kernel.agenda.schedule(queue.queue_id, now_ms + STORE_RETRY_MS)
        raise
    kernel.agenda.schedule(queue.queue_id, look_again_ms)
    return Sweep(
        queue.name, moved.get("expire", 0), moved.get("promote", 0), bool(moved.get("resume"))
    )
