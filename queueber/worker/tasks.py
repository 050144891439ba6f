"""Coroutines of asyncio, as tasks on the pool's own loop.

A handler that blocks the loop also holds up the heartbeat; what blocks belongs in a thread.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import Any

from queueber.worker.holding import HeldLease, WorkItem
from queueber.worker.outcomes import Failed, Outcome, Unfinished
from queueber.worker.runner import Finished, Runner

_CANCEL_SECONDS_MAX = 1.0
"""How long cancelled handlers have to tidy up."""


def is_cancelled(error: BaseException) -> bool:
    """Whether the pool cancelled the handler, rather than the handler something of its own."""
    task = asyncio.current_task()
    return isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling() > 0


class TaskRunner(Runner):
    def __init__(
        self,
        call: Callable[[WorkItem], Coroutine[Any, Any, bytes | Failed]],
        concurrency: int,
        on_finished: Callable[[Sequence[Finished]], None],
    ) -> None:
        self._call = call
        self._concurrency = concurrency
        self._on_finished = on_finished
        self._loop = asyncio.get_running_loop()
        self._waiting: deque[WorkItem] = deque()
        self._tasks: dict[WorkItem, asyncio.Task[bytes | Failed]] = {}
        self._finished: list[Finished] = []

    def put(self, items: Sequence[WorkItem]) -> None:
        self._waiting.extend(items)
        self._begin()

    def withdraw(self) -> list[WorkItem]:
        taken = list(self._waiting)
        self._waiting.clear()
        return taken

    def cancel(self, lease: HeldLease | None = None) -> None:
        for item, task in list(self._tasks.items()):
            if lease is None or item.lease is lease:
                task.cancel()

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    async def close(self) -> None:
        self.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks.values(), timeout=_CANCEL_SECONDS_MAX)

    def _begin(self) -> None:
        waiting, tasks = self._waiting, self._tasks
        while waiting and len(tasks) < self._concurrency:
            item = waiting.popleft()
            if item.lease.is_lost:
                self._finish(item, Unfinished.NOT_BEGUN)
            else:
                task = self._loop.create_task(self._call(item))
                tasks[item] = task
                task.add_done_callback(partial(self._end, item))

    def _end(self, item: WorkItem, task: "asyncio.Task[bytes | Failed]") -> None:
        del self._tasks[item]
        self._finish(item, Unfinished.CANCELLED if task.cancelled() else task.result())
        self._begin()

    def _finish(self, item: WorkItem, outcome: Outcome) -> None:
        # What ends in one turn of the loop is reported together.
        if not self._finished:
            self._loop.call_soon(self._report)
        self._finished.append((item, outcome))

    def _report(self) -> None:
        finished, self._finished = self._finished, []
        self._on_finished(finished)
