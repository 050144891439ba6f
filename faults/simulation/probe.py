"""Checks between two turns of the loop that no call waits for what is already there."""

from collections.abc import Iterator

from faults.simulation.server import Server
from queueber.db.families import Family
from queueber.db.records.keys import NEVER_MS, due_upper_bound, time_part
from queueber.engine.queue.queue_state import QueueState
from queueber.errors import NotFound
from queueber.limits import LOOKAHEAD_RETRY_MS
from queueber.service.service import Service


def waits_in_vain(server: Server, queue: QueueState, batches: tuple[str, ...]) -> Iterator[str]:
    service = server.service
    now_ms, agenda = service.shell.clock.now_ms(), service.shell.engine.agenda
    # The sweeper serves those whom a rate allows an item from this millisecond on.
    is_due = agenda.due_ms(queue.queue_id) <= now_ms
    if queue.leasable(now_ms) and not queue.paused_until_ms and not is_due:
        waiter = service.polls._waiters.first(queue.queue_id)
        # Bound polls may have to wait: their connection may hold too many for a quarantined item.
        if waiter is not None and not waiter.future.done() and waiter.asked.connection is None:
            yield f"a poll waits, and {queue.counters.ready} items are ready"
    if agenda.due_ms(queue.queue_id) > _tokens_due_ms(server, queue, now_ms):
        yield "tokens of cap keys are back, and nobody looks at them"
    for batch in batches:
        futures = service.shell.wakeups._futures.get((queue.queue_id, batch), {})
        if any(not future.done() for future in futures) and _is_complete(service, queue, batch):
            yield f"a call waits for batch {batch}, which is complete"


def _tokens_due_ms(server: Server, queue: QueueState, now_ms: int) -> int:
    """When the sweeper has to look at the cap keys of a queue: now if tokens are back, but a little
    later if it could not find out when they would be, see `look_ahead`. `NEVER_MS`: none are."""
    store, counters, prefix = server.store, queue.counters, queue.prefix
    stop = due_upper_bound(prefix, now_ms)
    if not counters.cap_dues or not store.scan(Family.CAP_DUE, prefix, stop, 1):
        return NEVER_MS
    # It knows of no entry before the millisecond after that in which it looked.
    low_ms = counters.cap_due_ms
    has_given_up = (Family.CAP_DUE, prefix + time_part(low_ms)) in store.gave_up
    return max(now_ms, low_ms - 1 + LOOKAHEAD_RETRY_MS) if has_given_up else now_ms


def _is_complete(service: Service, queue: QueueState, batch: str) -> bool:
    try:
        return queue.batches.receipt(batch).complete
    except NotFound:
        return False
