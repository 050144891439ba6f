"""Coroutines, as tasks: what asyncio and trio have in common, and the runner for asyncio."""

import asyncio
import threading
import traceback
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import Any
from weakref import WeakSet

from queueber.clock import seconds
from queueber.worker.handlers.runner import CANCEL_SECONDS_MAX, OnFinished, Runner
from queueber.worker.handlers.time_limit import Deadline, TimeLimit, stack_of_thread
from queueber.worker.handlers.work_item import Failed, HeldLease, Outcome, Unfinished, WorkItem

_cancelled_by_pool: "WeakSet[asyncio.Task[Any]]" = WeakSet()

AsyncCall = Callable[[WorkItem], Coroutine[Any, Any, bytes | Failed]]


class CoroutineRunner(Runner):
    """At most `concurrency` running tasks."""

    def __init__(
        self,
        call: AsyncCall,
        concurrency: int,
        call_soon: Callable[..., object],
        on_finished: OnFinished,
        limit: TimeLimit | None,
    ) -> None:
        super().__init__(call_soon, on_finished, limit)
        self._call = call if limit is None else self._limited(call, limit)
        self._concurrency = concurrency
        self._begins = True
        self._running: dict[WorkItem, Any] = {}
        """With each item what cancels its handler: an asyncio task or a cancel scope of trio."""

    def cancel(self, lease: HeldLease | None = None) -> None:
        for item in list(self._running):
            if lease is None or item.lease is lease:
                self._cancel_running(item)

    def cancel_at_once(self) -> None:
        self._begins = False
        self.cancel()

    def _start(self, item: WorkItem) -> Any:
        """Start the handler, and return what cancels it. `_end` is called when it has ended."""
        raise NotImplementedError

    def _begin(self) -> None:
        waiting, running = self._waiting, self._running
        while self._begins and not waiting.empty() and len(running) < self._concurrency:
            item = self._next()
            if item is None:
                return
            if item.lease.is_lost:
                self._finish(item, Unfinished.NOT_BEGUN)
            else:
                running[item] = self._start(item)

    def _end(self, item: WorkItem, outcome: Outcome) -> None:
        del self._running[item]
        self._finish(item, outcome)
        self._begin()

    # --- time limits ------------------------------------------------------------------------------

    def _limited(self, call: AsyncCall, limit: TimeLimit) -> AsyncCall:
        async def limited(item: WorkItem) -> bytes | Failed:
            deadline = limit.begin(item)
            try:
                outcome = await call(item)
            except BaseException as error:
                # Also raised if the lease was lost, or the pool ends.
                if deadline.cancelled_at is None:
                    raise
                return limit.failure(item, deadline, traceback.extract_tb(error.__traceback__))
            finally:
                self._has_ended(limit, item)
            if deadline.cancelled_at is None:
                return outcome
            # It caught its cancellation.
            more = outcome.error if isinstance(outcome, Failed) else "it returned when cancelled"
            return limit.failure(item, deadline, traceback.StackSummary(), more=more)

        return lambda item: limited(item) if limit.is_for(item) else call(item)

    def _stop_late(self, item: WorkItem, deadline: Deadline) -> None:
        assert self._limit is not None
        if deadline.cancelled_at is None:
            deadline.cancelled_at = seconds()
            self._cancel_item(item)
        elif deadline.cancelled_at + CANCEL_SECONDS_MAX < seconds():
            self._give_up(self._limit, item, deadline, traceback.StackSummary())

    def _cancel_item(self, item: WorkItem) -> None:
        if item in self._running:
            self._cancel_running(item)

    def _cancel_running(self, item: WorkItem) -> None:
        self._running[item].cancel()


class AsyncioRunner(CoroutineRunner):
    """Tasks on the loop of the pool.

    A handler that blocks the loop also blocks the heartbeat; a handler that blocks should be a
    plain function. The tasks are in no task group: a group waits until each task has ended, and a
    handler may refuse to end. `close` cancels them all and waits for a bounded time.
    """

    def __init__(
        self,
        call: AsyncCall,
        concurrency: int,
        on_finished: OnFinished,
        limit: TimeLimit | None = None,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._thread_id = threading.get_ident()
        super().__init__(call, concurrency, self._loop.call_soon, on_finished, limit)

    def put(self, items: Sequence[WorkItem]) -> None:
        super().put(items)
        self._begin()

    def blocked_by(self) -> tuple[WorkItem, Failed] | None:
        task = asyncio.current_task(self._loop)
        found = [item for item, each in self._running.copy().items() if each is task]
        if not found or self._limit is None:
            return None
        deadline = self._limit.late(found[0])
        if deadline is None:
            return None
        stack = stack_of_thread(self._thread_id)
        more = "it blocked the event loop, so its process was ended"
        return found[0], self._limit.failure(found[0], deadline, stack, more=more)

    async def close(self) -> None:
        self.cancel()
        if self._running:
            await asyncio.wait(self._running.values(), timeout=CANCEL_SECONDS_MAX)

    def _start(self, item: WorkItem) -> "asyncio.Task[bytes | Failed]":
        task = self._loop.create_task(self._call(item))
        task.add_done_callback(partial(self._ended, item))
        return task

    def _cancel_running(self, item: WorkItem) -> None:
        _cancelled_by_pool.add(self._running[item])
        super()._cancel_running(item)

    def _ended(self, item: WorkItem, task: "asyncio.Task[bytes | Failed]") -> None:
        self._end(item, Unfinished.CANCELLED if task.cancelled() else task.result())


def is_pools_cancellation(error: BaseException) -> bool:
    """Whether the pool cancelled the handler. A handler may also raise CancelledError itself, or
    cancel its own task: that is a failure, else its item would come back again and again."""
    return (
        isinstance(error, asyncio.CancelledError) and asyncio.current_task() in _cancelled_by_pool
    )


def is_cancellation(error: BaseException) -> bool:
    """Whether the task was cancelled, by whomever."""
    task = asyncio.current_task()
    return isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling() > 0
