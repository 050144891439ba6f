"""The runner that a handler needs: threads for a function, asyncio or trio for a coroutine."""

from typing import Any

from queueber.worker.handlers import coroutine_runners, spans, work_item
from queueber.worker.handlers.runner import OnFinished, Runner
from queueber.worker.handlers.thread_runner import ThreadRunner
from queueber.worker.handlers.time_limit import TimeLimit
from queueber.worker.worker_settings import WorkerSettings, is_coroutine_function


def make_runner(settings: WorkerSettings, on_finished: OnFinished) -> Runner:
    """Trio is imported only for a handler that uses it."""
    handler: Any = settings.find_handler()
    codecs = settings.find_serializer(), settings.find_deserializer()
    timeout = settings.timeout_seconds
    limit = None if timeout is None else TimeLimit(timeout)
    if not is_coroutine_function(handler):
        call = work_item.make_call(spans.traced(handler, settings.source), *codecs)
        return ThreadRunner(call, settings.concurrency, on_finished, limit)
    handler = spans.traced_async(handler, settings.source)
    if settings.loop == "trio":
        from queueber.worker.handlers import trio_runner

        async_call = work_item.make_async_call(handler, *codecs, trio_runner.is_cancellation)
        return trio_runner.TrioRunner(async_call, settings.concurrency, on_finished, limit)
    async_call = work_item.make_async_call(handler, *codecs, coroutine_runners.is_cancellation)
    return coroutine_runners.AsyncioRunner(async_call, settings.concurrency, on_finished, limit)
