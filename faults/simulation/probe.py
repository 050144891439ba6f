"""Checks between two turns of the loop that no call waits for what is already there."""

from collections.abc import Iterator

from queueber.db.families import Family
from queueber.db.records.keys import due_upper_bound
from queueber.engine.queue.queue_state import QueueState
from queueber.errors import NotFound
from queueber.limits import LOOKAHEAD_RETRY_MS
from queueber.service.service import Service


def waits_in_vain(service: Service, queue: QueueState, batches: tuple[str, ...]) -> Iterator[str]:
    now_ms, agenda = service.shell.clock.now_ms(), service.shell.engine.agenda
    # The sweeper serves those whom a rate allows an item from this millisecond on.
    is_due = agenda.due_ms(queue.queue_id) <= now_ms
    if queue.leasable(now_ms) and not queue.paused_until_ms and not is_due:
        waiter = service.polls._waiters.first(queue.queue_id)
        # Bound polls may have to wait: their connection may hold too many for a quarantined item.
        if waiter is not None and not waiter.future.done() and waiter.asked.connection is None:
            yield f"a poll waits, and {queue.counters.ready} items are ready"
    # A search that many deleted entries stop goes on so much later.
    looked_at_ms = now_ms - LOOKAHEAD_RETRY_MS
    if queue.counters.cap_dues and not is_due and _has_due_keys(service, queue, looked_at_ms):
        yield "tokens of cap keys are back, and nobody looks at them"
    for batch in batches:
        futures = service.shell.wakeups._futures.get((queue.queue_id, batch), {})
        if any(not future.done() for future in futures) and _is_complete(service, queue, batch):
            yield f"a call waits for batch {batch}, which is complete"


def _has_due_keys(service: Service, queue: QueueState, now_ms: int) -> bool:
    stop = due_upper_bound(queue.prefix, now_ms)
    return bool(service.shell.engine.store.scan(Family.CAP_DUE, queue.prefix, stop, 1))


def _is_complete(service: Service, queue: QueueState, batch: str) -> bool:
    try:
        return queue.batches.receipt(batch).complete
    except NotFound:
        return False
