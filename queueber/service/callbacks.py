"""Callbacks of batches: store and show them. What they add is added by the sweeper, or by whoever
polls the queue of the batch first."""

from collections.abc import Awaitable
from dataclasses import replace

from queueber.auth.roles import Action
from queueber.model import Callback, CallbackInfo
from queueber.service.queues import Queues
from queueber.service.rights import check_right
from queueber.service.session import QueueHandle, Session
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
        callbacks = shell.engine.flow.callbacks(queue.state)
        # A call that is refused, or repeated after its item was added, creates no queue.
        if callbacks.check(batch, callback) and callback.to not in shell.engine.queues:
            self._queues.create_missing(callback.to, queue.session)
        return shell.write(queue, callbacks.put, batch, callback, event="callback_stored")

    def describe_callback(self, queue: QueueHandle, batch: str) -> Awaitable[CallbackInfo]:
        check_batch(batch)
        queue.check_alive()
        shell = self._shell
        info = shell.engine.flow.callbacks(queue.state).describe(batch)
        if info.problem and not _may_know_limits(queue.session, info.to):
            problem = f"queue {info.to!r} does not take the item; who may read it knows why"
            info = replace(info, problem=problem)
        return shell.durable(info)


def _may_know_limits(session: Session, name: str) -> bool:
    """Whether the caller learns the limits of a queue anyway, by its statistics or its adds."""
    caller = session.caller
    rights = (Action.READ, Action.ADD)
    return caller is None or any(caller.may(each, "queue", name) for each in rights)
