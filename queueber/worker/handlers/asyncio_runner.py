"""Coroutines of asyncio, as tasks on the loop of the pool.

A handler that blocks the loop also blocks the heartbeat; a handler that blocks should be a plain
function. The tasks are in no task group: a group waits until each task has ended, and a handler may
refuse to end. The runner holds them all, and `close` cancels them and waits for a bounded time.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import Any

from queueber.worker.handlers.handler_outcome import Failed, Outcome, Unfinished
from queueber.worker.handlers.runner import CANCEL_SECONDS_MAX, Finished, OnFinished
from queueber.worker.work_item import HeldLease, WorkItem


def is_cancellation(error: BaseException) -> bool:
    """Whether the pool cancelled the handler. A handler may also raise CancelledError itself."""
    task = asyncio.current_task()
    return isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling() > 0


class AsyncioRunner:
    can_cancel = True

    def __init__(
        self,
        call: Callable[[WorkItem], Coroutine[Any, Any, bytes | Failed]],
        concurrency: int,
        on_finished: OnFinished,
    ) -> None:
        self._call = call
        self._concurrency = concurrency
        self._on_finished = on_finished
        self._loop = asyncio.get_running_loop()
        self._waiting: deque[WorkItem] = deque()
        self._tasks: dict[WorkItem, asyncio.Task[bytes | Failed]] = {}
        self._finished: list[Finished] = []

    @property
    def waiting(self) -> int:
        return len(self._waiting)

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

    async def close(self) -> None:
        self.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks.values(), timeout=CANCEL_SECONDS_MAX)

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
        # Outcomes of one turn of the loop are reported together.
        if not self._finished:
            self._loop.call_soon(self._report)
        self._finished.append((item, outcome))

    def _report(self) -> None:
        finished, self._finished = self._finished, []
        self._on_finished(finished)
