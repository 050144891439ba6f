"""The runner that a handler needs: threads for a function, asyncio or trio for a coroutine."""

import asyncio
from collections.abc import Sequence
from operator import attrgetter
from typing import Any

from queueber.worker.handlers import coroutine_runners, work_item
from queueber.worker.handlers.kinds import JobItem, Kinds, call_kind
from queueber.worker.handlers.middleware import Chain
from queueber.worker.handlers.runner import OnFinished, Runner
from queueber.worker.handlers.shared_deadlines import SharedDeadlines
from queueber.worker.handlers.spans import Tracing
from queueber.worker.handlers.thread_runner import ThreadRunner
from queueber.worker.handlers.time_limit import TimeLimit
from queueber.worker.handlers.work_item import Failed, HeldLease, WorkItem
from queueber.worker.worker_settings import WorkerSettings, is_coroutine_function


class BothRunners:
    """Threads for the kinds that are functions, and tasks for those that are coroutines."""

    can_cancel = True

    def __init__(self, threads: Runner, tasks: Runner) -> None:
        self._threads = threads
        self._tasks = tasks

    @property
    def waiting(self) -> int:
        return self._threads.waiting + self._tasks.waiting

    @property
    def stuck(self) -> int:
        return self._threads.stuck + self._tasks.stuck

    @property
    def stuck_slots(self) -> int:
        """Of the one with more of them: when all of its slots are taken up, its kinds rest."""
        return max(self._threads.stuck, self._tasks.stuck)

    @property
    def stuck_limit(self) -> float:
        return max(self._threads.stuck_limit, self._tasks.stuck_limit)

    @property
    def time_left(self) -> float:
        return max(self._threads.time_left, self._tasks.time_left)

    def put(self, items: Sequence[WorkItem]) -> None:
        tasks: list[WorkItem] = []
        calls: list[WorkItem] = []
        for item in items:
            assert isinstance(item, JobItem)
            (tasks if item.kind.is_coroutine else calls).append(item)
        if tasks:
            self._tasks.put(tasks)
        if calls:
            self._threads.put(calls)

    def withdraw(self) -> list[WorkItem]:
        return self._threads.withdraw() + self._tasks.withdraw()

    def cancel(self, lease: HeldLease | None = None) -> None:
        self._tasks.cancel(lease)

    def cancel_at_once(self) -> None:
        self._tasks.cancel_at_once()

    async def close(self) -> None:
        await self._threads.close()
        await self._tasks.close()

    def blocked_by(self) -> tuple[WorkItem, Failed] | None:
        return self._tasks.blocked_by()

    async def watch_time(self) -> None:
        await asyncio.gather(self._threads.watch_time(), self._tasks.watch_time())


def make_runner(
    settings: WorkerSettings, on_finished: OnFinished, shared: SharedDeadlines | None = None
) -> Runner | BothRunners:
    handler: Any = settings.find_handler()
    chain = Chain([Tracing(), *settings.find_middleware()], settings.source)

    def new_limit() -> TimeLimit:
        own = attrgetter("timeout")
        return TimeLimit(settings.timeout_seconds, chain.on_error, own_limit=own, shared=shared)

    if not isinstance(handler, Kinds):
        # Messages have no time limits of their own.
        may_be_late = settings.topic is None or settings.timeout_seconds is not None
        limit = new_limit() if may_be_late else None
        if is_coroutine_function(handler):
            return _tasks(settings, chain, handler, limit, on_finished)
        return _threads(settings, chain, handler, limit, on_finished)

    are_coroutines = {kind.is_coroutine for kind in handler.all_kinds()}
    if are_coroutines == {True}:
        return _tasks(settings, chain, call_kind, new_limit(), on_finished)
    threads = _threads(settings, chain, call_kind, new_limit(), on_finished)
    if True not in are_coroutines:
        return threads
    return BothRunners(threads, _tasks(settings, chain, call_kind, new_limit(), on_finished))


def _threads(
    settings: WorkerSettings,
    chain: Chain,
    handler: Any,
    limit: TimeLimit | None,
    on_finished: OnFinished,
) -> Runner:
    around = settings.find_serializer(), settings.find_deserializer(), chain.on_error
    call = work_item.make_call(chain.wrap(handler), *around)
    return ThreadRunner(call, settings.concurrency, on_finished, limit)


def _tasks(
    settings: WorkerSettings,
    chain: Chain,
    handler: Any,
    limit: TimeLimit | None,
    on_finished: OnFinished,
) -> Runner:
    """Trio is imported only for a handler that uses it."""
    around = settings.find_serializer(), settings.find_deserializer(), chain.on_error
    handler = chain.wrap_async(handler)
    if settings.loop == "trio":
        from queueber.worker.handlers import trio_runner

        call = work_item.make_async_call(handler, *around, trio_runner.is_cancellation)
        return trio_runner.TrioRunner(call, settings.concurrency, on_finished, limit)
    call = work_item.make_async_call(handler, *around, coroutine_runners.is_pools_cancellation)
    return coroutine_runners.AsyncioRunner(call, settings.concurrency, on_finished, limit)
