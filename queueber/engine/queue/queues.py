"""Queues: create, configure, delete, and their statistics."""

from queueber.db.families import QUEUE_FAMILIES, Family
from queueber.db.records.counters import Counters, encode_counters
from queueber.db.records.items import encode_queue
from queueber.db.records.keys import prefix_end, queue_prefix, split_due_part
from queueber.engine.kernel.state import (
    LAST_ID_KEY,
    NEXT_QUEUE_KEY,
    RECLAIM_KEY,
    Engine,
    QueueState,
)
from queueber.engine.log.log import open_log
from queueber.errors import AlreadyExists, ResourceExhausted
from queueber.limits import QUEUES_MAX
from queueber.model import QueueSettings, Stats


def create_queue(engine: Engine, name: str, settings: QueueSettings, now_ms: int) -> bool:
    """Create the queue; False when it exists with these settings, `AlreadyExists` with others."""
    existing = engine.queues.get(name)
    if existing is not None:
        if existing.settings != settings:
            raise AlreadyExists(
                f"queue {name!r} exists with other settings; change them with configure"
            )
        return False
    if len(engine.queues) >= QUEUES_MAX:
        raise ResourceExhausted(f"the server has {QUEUES_MAX} queues, the limit; delete one first")

    queue_id = engine.next_queue_id
    prefix = queue_prefix(queue_id)
    counters = Counters()
    batch = engine.store.batch()
    batch.put(Family.QUEUES, prefix, encode_queue(name, now_ms, settings))
    batch.put(Family.COUNTERS, prefix, encode_counters(counters))
    # Numbers are never used again, so nothing of a deleted queue can turn up in a new one.
    batch.put(Family.DEFAULT, NEXT_QUEUE_KEY, (queue_id + 1).to_bytes(4))
    engine.store.write(batch)

    queue = QueueState(
        queue_id,
        name,
        settings,
        created_at_ms=now_ms,
        counters=counters,
        results=open_log(engine.store, prefix),
    )
    engine.queues[name] = engine.by_id[queue_id] = queue
    engine.next_queue_id = queue_id + 1
    return True


def configure_queue(engine: Engine, name: str, settings: QueueSettings, now_ms: int) -> None:
    """Replace the settings. They bind what comes later; what is stored stays."""
    queue = engine.queue(name)
    batch = engine.store.batch()
    record = encode_queue(name, queue.created_at_ms, settings, queue.paused_until_ms)
    batch.put(Family.QUEUES, queue.prefix, record)
    engine.store.write(batch)
    queue.settings = settings
    engine.agenda.schedule(queue.queue_id, queue.results_due_ms(now_ms))


def delete_queue(engine: Engine, name: str) -> bool:
    """Delete the queue with all its items; False when there is none.

    One range deletion a family: the cost does not depend on how many items there are. The room on
    disk is given back later, see `reclaim.py`.
    """
    queue = engine.queues.get(name)
    if queue is None:
        return False
    batch = engine.store.batch()
    for family in QUEUE_FAMILIES:
        batch.delete_range(family, queue.prefix, prefix_end(queue.prefix))
    # The counters that knew how far its ids had come are gone with it.
    batch.put(Family.DEFAULT, LAST_ID_KEY, max(engine.retired_last_id, queue.counters.last_id))
    batch.put(Family.DEFAULT, RECLAIM_KEY + queue.prefix, b"")
    engine.store.write(batch)
    engine.retired_last_id = max(engine.retired_last_id, queue.counters.last_id)
    del engine.queues[name], engine.by_id[queue.queue_id]
    engine.agenda.forget(queue.queue_id)
    engine.fresh.forget(queue.queue_id)
    engine.reclaims.append(queue.prefix)
    engine.stale_stages += [load.directory for load in queue.loads.values()]
    queue.is_deleted = True
    return True


def queue_stats(engine: Engine, queue: QueueState, *, waiting_polls: int, now_ms: int) -> Stats:
    c, head = queue.counters, queue.results.head
    return Stats(
        name=queue.name,
        settings=queue.settings,
        created_at_ms=queue.created_at_ms,
        ready=c.ready,
        delayed=c.delayed,
        leased=c.leased,
        dead=c.dead,
        leases=c.leases,
        contents_bytes=c.contents_bytes,
        oldest_claimable_age_ms=_oldest_claimable_age_ms(engine, queue, now_ms),
        waiting_polls=waiting_polls,
        paused_until_ms=queue.paused_until_ms if queue.is_paused(now_ms) else 0,
        results=head.next_offset - head.first_offset,
        result_bytes=head.kept_bytes,
        batches=c.batches,
        added_total=c.added_total,
        polled_total=c.polled_total,
        removed_total=c.removed_total,
        completed_total=c.completed_total,
        failed_total=c.failed_total,
        released_total=c.released_total,
        expired_total=c.expired_total,
        extended_total=c.extended_total,
        died_total=c.died_total,
        redriven_total=c.redriven_total,
        cancelled_total=c.cancelled_total,
        duplicates_total=c.duplicates_total,
    )


def _oldest_claimable_age_ms(engine: Engine, queue: QueueState, now_ms: int) -> int:
    """How long the oldest item that a poll could have now has been ready; 0 when there is none."""
    if queue.is_paused(now_ms):
        return 0
    oldest_ms = now_ms
    for level in queue.counters.levels:
        ((due, _),) = queue.first_ready(engine.store, level, 1)
        oldest_ms = min(oldest_ms, split_due_part(due)[0])
    return now_ms - oldest_ms
