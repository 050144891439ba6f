"""Operations on schedules, each in a transaction of its own, and what they have added."""

from typing import Any

from queueber.engine.kernel.transaction import Transaction
from queueber.engine.open import Engine
from queueber.engine.queue.peek import look
from queueber.engine.queue.queue_state import QueueState, live_view
from queueber.model import (
    SCHEDULE_ATTRIBUTE,
    SCHEDULED_AT_ATTRIBUTE,
    ItemOptions,
    ItemState,
    Schedule,
    Stored,
)


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
    return [(name, at_ms) for name, at_ms, _ in runs_with_options_in(engine, queue)]


def runs_with_options_in(engine: Engine, queue: str) -> list[tuple[str, int, ItemOptions]]:
    """As `runs_in`, with what each item has of its own, but for its expiry."""
    view = live_view(engine.store, engine.queues.get(queue))
    items, _ = look(view, ItemState.READY, b"", 100_000, 1 << 40, with_options=True)
    items = sorted(items, key=lambda each: each.id)
    return [
        (
            each.attributes[SCHEDULE_ATTRIBUTE],
            int(each.attributes[SCHEDULED_AT_ATTRIBUTE]),
            ItemOptions(each.attempts_max, tuple(each.backoff_ms), each.timeout_ms),
        )
        for each in items
    ]
