"""Operations on schedules, each in a transaction of its own, and what they have added."""

from typing import Any

from queueber.engine.kernel.transaction import Transaction
from queueber.engine.open import Engine
from queueber.engine.queue.peek import look
from queueber.engine.queue.queue_state import QueueState, live_view
from queueber.engine.schedules.queue_schedules import ATTRIBUTE_AT, ATTRIBUTE_NAME
from queueber.model import ItemState, Schedule, Stored


def run_on(engine: Engine, queue: QueueState | None, now_ms: int, op: Any, *arguments: Any) -> Any:
    tx = Transaction(engine.kernel, now_ms, queue)
    answer = op(tx, *arguments)
    tx.commit()
    return answer


def put_schedule(engine: Engine, schedule: Schedule, now_ms: int) -> Stored:
    stored: Stored = run_on(engine, None, now_ms, engine.schedules.put, schedule)
    return stored


def pause_schedule(engine: Engine, name: str, now_ms: int) -> bool:
    return bool(run_on(engine, None, now_ms, engine.schedules.pause, name))


def resume_schedule(engine: Engine, name: str, now_ms: int) -> bool:
    return bool(run_on(engine, None, now_ms, engine.schedules.resume, name))


def remove_schedule(engine: Engine, name: str, now_ms: int) -> bool:
    return bool(run_on(engine, None, now_ms, engine.schedules.remove, name))


def run_schedule(engine: Engine, name: str, now_ms: int) -> bytes:
    queue = engine.schedules.queue_of(name)
    return bytes(run_on(engine, queue, now_ms, engine.schedules.run_now, name))


def runs_in(engine: Engine, queue: str) -> list[tuple[str, int]]:
    """Schedule and time of every item of a queue, in the order in which they were added."""
    view = live_view(engine.store, engine.queues.get(queue))
    items, _ = look(view, ItemState.READY, b"", 100_000, 1 << 40)
    items = sorted(items, key=lambda each: each.id)
    return [(each.attributes[ATTRIBUTE_NAME], int(each.attributes[ATTRIBUTE_AT])) for each in items]
