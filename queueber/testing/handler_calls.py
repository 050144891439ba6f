"""Calls of handlers in line: as a worker calls them, in the thread of the test."""

import asyncio
import contextvars
from collections.abc import Callable, Coroutine, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from random import Random
from typing import Any

import sniffio

from queueber.client import Item
from queueber.client.arguments.new_items import to_new_items
from queueber.clock import SystemClock
from queueber.errors import InvalidArgument
from queueber.ids import IdSource
from queueber.testing.inline_limits import call_async_limited, call_limited
from queueber.worker.handlers import coroutine_runners
from queueber.worker.handlers.kinds import JobItem, Kinds, call_kind
from queueber.worker.handlers.middleware import Chain, Middleware
from queueber.worker.handlers.spans import Tracing
from queueber.worker.handlers.work_item import (
    Deserializer,
    Failed,
    HeldLease,
    Serializer,
    WorkItem,
    make_async_call,
    make_call,
)
from queueber.worker.worker_settings import (
    Handler,
    LoopName,
    SerializerName,
    WorkerSettings,
    is_coroutine_function,
    to_listed,
)

ids = IdSource(Random())
clock = SystemClock()


@dataclass(frozen=True, slots=True)
class Ended:
    """How one call of a handler ended."""

    outcome: bytes | Failed
    error: BaseException | None
    """What it raised, if it failed."""


class HandlerCalls:
    """The handler of a worker with its middleware and serializers, called without the worker."""

    def __init__(self, settings: WorkerSettings) -> None:
        self._chain = Chain([Tracing(), *settings.find_middleware()], settings.source)
        handler: Any = settings.find_handler()
        self._handler: Any = call_kind if isinstance(handler, Kinds) else handler
        self._formats = settings.find_serializer(), settings.find_deserializer()
        self._uses_trio = settings.loop == "trio"

    def is_awaited(self, item: WorkItem) -> bool:
        """Whether the handler is a coroutine function that runs in asyncio."""
        return self.is_coroutine(item) and not self._uses_trio

    def is_coroutine(self, item: WorkItem) -> bool:
        if isinstance(item, JobItem):
            return item.kind.is_coroutine
        return is_coroutine_function(self._handler)

    def call(self, item: WorkItem) -> Ended:
        """A coroutine runs on a loop of its own, if need be in a thread of its own."""
        if self.is_coroutine(item):
            return self._run(self.call_async(item))
        errors: list[BaseException] = []
        handler, on_error = self._chain.wrap(self._handler), self._noting(errors)
        call = make_call(handler, *self._formats, on_error)
        return _ended(call_limited(call, item, on_error), errors)

    async def call_async(self, item: WorkItem) -> Ended:
        errors: list[BaseException] = []
        handler, on_error = self._chain.wrap_async(self._handler), self._noting(errors)
        call = make_async_call(handler, *self._formats, on_error, self._is_cancellation())
        outcome = await call_async_limited(call, item, on_error, uses_trio=self._uses_trio)
        return _ended(outcome, errors)

    def _is_cancellation(self) -> Callable[[BaseException], bool]:
        if not self._uses_trio:
            return coroutine_runners.is_cancellation
        from queueber.worker.handlers import trio_runner  # it loads trio

        return trio_runner.is_cancellation

    def _noting(self, errors: list[BaseException]) -> Any:
        def on_error(item: WorkItem, error: BaseException) -> None:
            errors.append(error)
            if self._chain.on_error is not None:
                self._chain.on_error(item, error)

        return on_error

    def _run(self, coroutine: Coroutine[Any, Any, Ended]) -> Ended:
        run = self._run_in_trio if self._uses_trio else asyncio.run
        try:
            sniffio.current_async_library()
        except sniffio.AsyncLibraryNotFoundError:
            return run(coroutine)
        # A loop runs in this thread already, and cannot be waited for.
        with ThreadPoolExecutor(1, "queueber-inline") as threads:
            return threads.submit(contextvars.copy_context().run, run, coroutine).result()

    def _run_in_trio(self, coroutine: Coroutine[Any, Any, Ended]) -> Ended:
        import trio

        async def wait() -> Ended:
            return await coroutine

        return trio.run(wait)


def check_attempts(argument: str, given: object) -> None:
    if isinstance(given, bool) or not isinstance(given, int) or given < 1:
        raise InvalidArgument(f"{argument}: {given!r} is not a number from 1 on")


def _ended(outcome: bytes | Failed, errors: list[BaseException]) -> Ended:
    return Ended(outcome, errors[-1] if errors else None)


def inline_settings(handler: Handler | Kinds | str, **given: Any) -> WorkerSettings:
    """What a worker would be given, checked; what is about servers has no meaning."""
    without_server: dict[str, Any] = {
        "address": "",
        "queue": "default",
        "concurrency": 1,
        "processes": 0,
        "prefetch": 0,
        "lease_seconds": 60,
        "shutdown_seconds": 0,
        "connect_seconds": 0,
        "serializer": None,
        "deserializer": None,
        "on_lease_lost": None,
    }
    return WorkerSettings(handler=handler, **without_server | given)


def run_handler(
    handler: Handler | str,
    contents: bytes = b"",
    *,
    attempt: int = 1,
    key: str | None = None,
    attributes: Mapping[str, str] | None = None,
    batch: str | None = None,
    queue: str = "default",
    is_lost: bool = False,
    serializer: Serializer | SerializerName | None = None,
    deserializer: Deserializer | str | None = None,
    middleware: Sequence[Middleware | str] = (),
    loop: LoopName = "asyncio",
) -> bytes:
    """Call a handler with an item as a worker would, and return the result that would be stored.

    What the handler raises is raised here, `queueber.Retry` too. `handler`, serializers, middleware
    and `loop` are as for `Worker`; `attempt`, `key`, `attributes` and `batch` are of the item.
    """
    settings = inline_settings(
        handler,
        queue=queue,
        loop=loop,
        serializer=serializer,
        deserializer=deserializer,
        middleware=to_listed("middleware", middleware, "middleware"),
    )
    if isinstance(settings.find_handler(), Kinds):
        raise InvalidArgument("handler: it is an app; enqueue jobs within queueber.testing.inline")
    check_attempts("attempt", attempt)
    to_new_items(contents, key=key, attributes=attributes, batch=batch)  # raises if they are wrong
    lease = HeldLease(b"", 1, 0.0, is_lost, queue)
    (item_id,) = ids.mint(1, clock.now_ms())
    item = Item(item_id, contents, attempt, key or "", attributes or {}, batch or "")
    ended = HandlerCalls(settings).call(WorkItem(item, lease))
    if isinstance(ended.outcome, Failed):
        assert ended.error is not None
        raise ended.error
    return ended.outcome
