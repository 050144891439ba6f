"""The workflows of a store: which queue has which."""

from queueber.engine.flow.callbacks import QueueCallbacks
from queueber.engine.queue.queue_state import QueueState
from queueber.engine.queue.queues import Queues
from queueber.ids import QueueId


class Flow:
    def __init__(self, queues: Queues) -> None:
        self._queues = queues
        self._callbacks: dict[QueueId, QueueCallbacks] = {}
        queues.register(self._queue_opened, self._queue_deleted)

    def callbacks(self, queue: QueueState) -> QueueCallbacks:
        return self._callbacks[queue.queue_id]

    def _queue_opened(self, queue: QueueState) -> None:
        queue.callbacks = self._callbacks[queue.queue_id] = QueueCallbacks(queue, self._queues)

    def _queue_deleted(self, queue: QueueState) -> None:
        del self._callbacks[queue.queue_id]
