"""Runners call the handler: plain functions in threads, coroutines as tasks of asyncio or trio."""

import asyncio
import contextlib
import threading
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any

from queueber.worker.handlers import spans, work_item
from queueber.worker.handlers.work_item import Failed, HeldLease, Outcome, Unfinished, WorkItem
from queueber.worker.worker_settings import WorkerSettings, is_coroutine_function

Finished = tuple[WorkItem, Outcome]
OnFinished = Callable[[Sequence[Finished]], None]
Call = Callable[[WorkItem], bytes | Failed]
AsyncCall = Callable[[WorkItem], Coroutine[Any, Any, bytes | Failed]]

CANCEL_SECONDS_MAX = 1.0
"""How long cancelled handlers have to end. After that they are abandoned."""


def make_runner(settings: WorkerSettings, on_finished: OnFinished) -> "Runner":
    """The runner that the handler needs. Trio is imported only for a handler that uses it."""
    handler: Any = settings.find_handler()
    codecs = settings.find_serializer(), settings.find_deserializer()
    if not is_coroutine_function(handler):
        call = work_item.make_call(spans.traced(handler, settings.source), *codecs)
        return ThreadRunner(call, settings.concurrency, on_finished)
    handler = spans.traced_async(handler, settings.source)
    if settings.loop == "trio":
        from queueber.worker.handlers import trio_runner

        async_call = work_item.make_async_call(handler, *codecs, trio_runner.is_cancellation)
        return trio_runner.TrioRunner(async_call, settings.concurrency, on_finished)
    async_call = work_item.make_async_call(handler, *codecs, _is_cancellation)
    return AsyncioRunner(async_call, settings.concurrency, on_finished)


class Runner:
    """Runs up to `concurrency` handlers at once; further items wait in the runner.

    The pool calls all methods on its loop, and the runner calls `on_finished` there.
    """

    can_cancel = True
    """Whether `cancel` ends handlers that are running."""

    def __init__(self, call_soon: Callable[..., object], on_finished: OnFinished) -> None:
        """`call_soon` of the pool's loop is what carries outcomes to it, many in one wakeup."""
        self._call_soon = call_soon
        self._on_finished = on_finished
        self._waiting: SimpleQueue[WorkItem | None] = SimpleQueue()
        self._finished: deque[Finished] = deque()
        self._is_wakeup_pending = False

    @property
    def waiting(self) -> int:
        """Items that no handler has begun."""
        return self._waiting.qsize()

    def put(self, items: Sequence[WorkItem]) -> None:
        """Handle these items, in order, as soon as handlers are free."""
        for item in items:
            self._waiting.put(item)

    def withdraw(self) -> list[WorkItem]:
        """Take back the items that no handler has begun."""
        return list(iter(self._next, None))

    def cancel(self, lease: HeldLease | None = None) -> None:
        """Cancel the handlers of one lease, or all of them."""
        raise NotImplementedError

    async def close(self) -> None:
        """End idle threads and tasks. Handlers that do not end in time are abandoned."""
        raise NotImplementedError

    def _next(self) -> WorkItem | None:
        """The next item that waits, if any."""
        try:
            return self._waiting.get_nowait()
        except Empty:
            return None

    def _finish(self, item: WorkItem, outcome: Outcome) -> None:
        self._finished.append((item, outcome))
        # `_report` clears the flag before it reads the outcomes, so none stays behind.
        if not self._is_wakeup_pending:
            self._is_wakeup_pending = True
            with contextlib.suppress(RuntimeError):  # the loop is closed: handler was abandoned
                self._call_soon(self._report)

    def _report(self) -> None:
        self._is_wakeup_pending = False
        finished = self._finished
        self._on_finished([finished.popleft() for _ in range(len(finished))])


class ThreadRunner(Runner):
    """The threads take items from one queue, so the loop is not involved between two items."""

    can_cancel = False

    def __init__(self, call: Call, concurrency: int, on_finished: OnFinished) -> None:
        super().__init__(asyncio.get_running_loop().call_soon_threadsafe, on_finished)
        self._call = call
        # Daemons: a handler that never ends must not keep the program from ending.
        self._threads = [
            threading.Thread(target=self._work, name=f"queueber-handler-{number}", daemon=True)
            for number in range(concurrency)
        ]
        for thread in self._threads:
            thread.start()

    def cancel(self, lease: HeldLease | None = None) -> None:
        """Nothing can end a thread; the handler may look at `item.is_lost`."""

    async def close(self) -> None:
        for _ in self._threads:
            self._waiting.put(None)

    def _work(self) -> None:
        get, call, finish = self._waiting.get, self._call, self._finish
        while (item := get()) is not None:
            finish(item, Unfinished.NOT_BEGUN if item.lease.is_lost else call(item))


class CoroutineRunner(Runner):
    """What the runners of asyncio and trio have in common: at most `concurrency` running tasks."""

    def __init__(
        self,
        call: AsyncCall,
        concurrency: int,
        call_soon: Callable[..., object],
        on_finished: OnFinished,
    ) -> None:
        super().__init__(call_soon, on_finished)
        self._call = call
        self._concurrency = concurrency
        self._running: dict[WorkItem, Any] = {}
        """With each item what cancels its handler: an asyncio task or a cancel scope of trio."""

    def cancel(self, lease: HeldLease | None = None) -> None:
        for item, task in list(self._running.items()):
            if lease is None or item.lease is lease:
                task.cancel()

    def _start(self, item: WorkItem) -> Any:
        """Start the handler, and return what cancels it. `_end` is called when it has ended."""
        raise NotImplementedError

    def _begin(self) -> None:
        waiting, running = self._waiting, self._running
        while not waiting.empty() and len(running) < self._concurrency:
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


class AsyncioRunner(CoroutineRunner):
    """Tasks on the loop of the pool.

    A handler that blocks the loop also blocks the heartbeat; a handler that blocks should be a
    plain function. The tasks are in no task group: a group waits until each task has ended, and a
    handler may refuse to end. `close` cancels them all and waits for a bounded time.
    """

    def __init__(self, call: AsyncCall, concurrency: int, on_finished: OnFinished) -> None:
        self._loop = asyncio.get_running_loop()
        super().__init__(call, concurrency, self._loop.call_soon, on_finished)

    def put(self, items: Sequence[WorkItem]) -> None:
        super().put(items)
        self._begin()

    async def close(self) -> None:
        self.cancel()
        if self._running:
            await asyncio.wait(self._running.values(), timeout=CANCEL_SECONDS_MAX)

    def _start(self, item: WorkItem) -> "asyncio.Task[bytes | Failed]":
        task = self._loop.create_task(self._call(item))
        task.add_done_callback(partial(self._ended, item))
        return task

    def _ended(self, item: WorkItem, task: "asyncio.Task[bytes | Failed]") -> None:
        self._end(item, Unfinished.CANCELLED if task.cancelled() else task.result())


def _is_cancellation(error: BaseException) -> bool:
    """Whether the pool cancelled the handler. A handler may also raise CancelledError itself."""
    task = asyncio.current_task()
    return isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling() > 0
