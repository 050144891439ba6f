"""The runner that a handler needs: threads for a function, asyncio or trio for a coroutine."""

from typing import Any

from queueber.worker.handlers import coroutine_runners, work_item
from queueber.worker.handlers.middleware import Chain
from queueber.worker.handlers.runner import OnFinished, Runner
from queueber.worker.handlers.spans import Tracing
from queueber.worker.handlers.thread_runner import ThreadRunner
from queueber.worker.handlers.time_limit import TimeLimit
from queueber.worker.worker_settings import WorkerSettings, is_coroutine_function


def make_runner(settings: WorkerSettings, on_finished: OnFinished) -> Runner:
    """Trio is imported only for a handler that uses it."""
    handler: Any = settings.find_handler()
    chain = Chain([Tracing(), *settings.find_middleware()], settings.source)
    around = settings.find_serializer(), settings.find_deserializer(), chain.on_error
    timeout = settings.timeout_seconds
    limit = None if timeout is None else TimeLimit(timeout, chain.on_error)
    if not is_coroutine_function(handler):
        call = work_item.make_call(chain.wrap(handler), *around)
        return ThreadRunner(call, settings.concurrency, on_finished, limit)
    handler = chain.wrap_async(handler)
    if settings.loop == "trio":
        from queueber.worker.handlers import trio_runner

        async_call = work_item.make_async_call(handler, *around, trio_runner.is_cancellation)
        return trio_runner.TrioRunner(async_call, settings.concurrency, on_finished, limit)
    async_call = work_item.make_async_call(handler, *around, coroutine_runners.is_cancellation)
    return coroutine_runners.AsyncioRunner(async_call, settings.concurrency, on_finished, limit)
