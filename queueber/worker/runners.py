"""Which runner a handler needs. The libraries of the others are not loaded."""

from collections.abc import Callable, Sequence
from typing import Any

from queueber.worker.handlers import is_coroutine_function
from queueber.worker.outcomes import async_caller, caller
from queueber.worker.runner import Finished, Runner
from queueber.worker.settings import Settings


def make_runner(settings: Settings, on_finished: Callable[[Sequence[Finished]], None]) -> Runner:
    handler = settings.find_handler()
    codecs = settings.find_serializer(), settings.find_deserializer()
    if not is_coroutine_function(handler):
        from queueber.worker.threads import ThreadRunner

        return ThreadRunner(caller(handler, *codecs), settings.concurrency, on_finished)
    coroutine: Any = handler
    if settings.loop == "trio":
        from queueber.worker import trio_tasks

        call = async_caller(coroutine, *codecs, trio_tasks.is_cancelled)
        return trio_tasks.TrioRunner(call, settings.concurrency, on_finished)
    from queueber.worker import tasks

    call = async_caller(coroutine, *codecs, tasks.is_cancelled)
    return tasks.TaskRunner(call, settings.concurrency, on_finished)
