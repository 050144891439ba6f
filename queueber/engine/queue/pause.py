"""Pause: a queue gives out nothing, for a while or until it is resumed. All else goes on."""

from queueber.db.families import Family
from queueber.db.records.keys import NEVER_MS
from queueber.db.records.queues import encode_queue
from queueber.engine.kernel.state import Engine, QueueState


def pause(engine: Engine, queue: QueueState, until_ms: int) -> None:
    """Serve no poll before `until_ms`; `NEVER_MS`: until `resume`."""
    _write(engine, queue, until_ms)
    if until_ms < NEVER_MS:
        engine.agenda.schedule(queue.queue_id, until_ms)


def resume(engine: Engine, queue: QueueState) -> None:
    if queue.paused_until_ms:
        _write(engine, queue, 0)


def resume_if_due(engine: Engine, queue: QueueState, now_ms: int) -> bool:
    """End a pause whose time is over; whether there was one."""
    if not 0 < queue.paused_until_ms <= now_ms:
        return False
    resume(engine, queue)
    return True


def _write(engine: Engine, queue: QueueState, until_ms: int) -> None:
    batch = engine.store.batch()
    record = encode_queue(queue.name, queue.created_at_ms, queue.settings, until_ms)
    batch.put(Family.QUEUES, queue.prefix, record)
    engine.store.write(batch)
    queue.paused_until_ms = until_ms
