"""Which runner a handler needs. The libraries of the other runners are not imported."""

from typing import Any

from queueber.worker.handlers.handler import is_coroutine_function
from queueber.worker.handlers.handler_call import make_async_call, make_call
from queueber.worker.handlers.runner import OnFinished, Runner
from queueber.worker.worker_settings import WorkerSettings


def make_runner(settings: WorkerSettings, on_finished: OnFinished) -> Runner:
    handler = settings.find_handler()
    codecs = settings.find_serializer(), settings.find_deserializer()
    if not is_coroutine_function(handler):
        from queueber.worker.handlers.thread_runner import ThreadRunner

        return ThreadRunner(make_call(handler, *codecs), settings.concurrency, on_finished)
    coroutine: Any = handler
    if settings.loop == "trio":
        from queueber.worker.handlers import trio_runner

        call = make_async_call(coroutine, *codecs, trio_runner.is_cancellation)
        return trio_runner.TrioRunner(call, settings.concurrency, on_finished)
    from queueber.worker.handlers import asyncio_runner

    call = make_async_call(coroutine, *codecs, asyncio_runner.is_cancellation)
    return asyncio_runner.AsyncioRunner(call, settings.concurrency, on_finished)
