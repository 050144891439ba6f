"""Callbacks of batches: store and show them. What they add is added by the sweeper, or by whoever
polls the queue of the batch first."""

from collections.abc import Awaitable

from queueber.auth.roles import Action
from queueber.model import Callback, CallbackInfo
from queueber.service.queues import Queues
from queueber.service.rights import check_right
from queueber.service.session import QueueHandle
from queueber.service.shell import Shell
from queueber.service.validate.callbacks import check_callback
from queueber.service.validate.items import check_batch


class Callbacks:
    def __init__(self, shell: Shell, queues: Queues) -> None:
        self._shell = shell
        self._queues = queues

    def when_complete(
        self, queue: QueueHandle, batch: str, callback: Callback
    ) -> Awaitable[CallbackInfo]:
        """Add an item once the batch is complete. Its queue is created if there is none."""
        shell = self._shell
        check_batch(batch)
        check_callback(callback, shell.limits.item_bytes_max)
        check_right(queue.session, Action.ADD, "queue", callback.to)
        queue.check_alive()
        shell.write_gathered(queue.state)
        queue.state.batches.receipt(batch)  # a call that is refused creates no queue
        if callback.to not in shell.engine.queues:
            self._queues.create_missing(callback.to, queue.session)
        put = shell.engine.flow.callbacks(queue.state).put
        return shell.write(queue, put, batch, callback, event="callback_stored")

    def describe_callback(self, queue: QueueHandle, batch: str) -> Awaitable[CallbackInfo]:
        check_batch(batch)
        queue.check_alive()
        shell = self._shell
        return shell.durable(shell.engine.flow.callbacks(queue.state).describe(batch))
