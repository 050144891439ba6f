"""Operations on callbacks, each in a transaction of its own, and what they have added."""

from queueber.engine.open import Engine
from queueber.engine.queue.peek import look
from queueber.engine.queue.queue_state import QueueState, live_view
from queueber.model import Callback, CallbackInfo, ItemInfo, ItemState, callback_receipt
from tests.support.schedules import run_on


def when_complete(
    engine: Engine, queue: QueueState, batch: str, callback: Callback, now_ms: int
) -> CallbackInfo:
    put = engine.flow.callbacks(queue).put
    info: CallbackInfo = run_on(engine, queue, now_ms, put, batch, callback)
    return info


def called_back(engine: Engine, queue: str) -> list[ItemInfo]:
    """The items of a queue that callbacks have added, in the order in which they were."""
    view = live_view(engine.store, engine.queues.get(queue))
    found = [
        item
        for state in ItemState
        for item in look(view, state, b"", 100_000, 1 << 40, with_options=True)[0]
    ]
    own = [item for item in found if "queueber.added_digest" in item.attributes]
    return sorted(own, key=lambda each: each.id)


def batches_called_back(engine: Engine, queue: str) -> list[str]:
    return [callback_receipt(item.attributes).batch for item in called_back(engine, queue)]
