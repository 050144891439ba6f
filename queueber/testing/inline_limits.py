"""Time limits of handlers that are called in line.

A coroutine is cancelled, as in a worker. A function has the thread of the test, which waits until
it returns; if that took too long, it has failed, as in a worker.
"""

import asyncio
import traceback
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from queueber.clock import seconds
from queueber.worker.handlers.time_limit import Deadline, TimeLimit
from queueber.worker.handlers.work_item import Failed, OnError, WorkItem

Outcome = bytes | Failed
Call = Callable[[WorkItem], Outcome]
AsyncCall = Callable[[WorkItem], Coroutine[Any, Any, Outcome]]


@dataclass(slots=True)
class _Stopped:
    """A coroutine that has ended, maybe because its time was over."""

    outcome: Outcome | None = None
    stack: traceback.StackSummary | None = None
    is_late: bool = False


def call_limited(call: Call, item: WorkItem, on_error: OnError) -> Outcome:
    if item.timeout is None:
        return call(item)
    began = seconds()
    outcome = call(item)
    took = seconds() - began
    if took <= item.timeout:
        return outcome
    more = f"it ended after {took:.3g} s"
    return _failure(item, on_error, traceback.StackSummary(), more)


async def call_async_limited(
    call: AsyncCall, item: WorkItem, on_error: OnError, *, uses_trio: bool
) -> Outcome:
    if item.timeout is None:
        return await call(item)
    stop = _stop_in_trio if uses_trio else _stop_in_asyncio
    stopped = await stop(call(item), item.timeout)
    if stopped.outcome is None:
        return _failure(item, on_error, stopped.stack or traceback.StackSummary())
    if not stopped.is_late:
        return stopped.outcome
    caught = stopped.outcome
    more = caught.error if isinstance(caught, Failed) else "it returned when cancelled"
    return _failure(item, on_error, traceback.StackSummary(), more)


def _failure(
    item: WorkItem, on_error: OnError, stack: traceback.StackSummary, more: str = ""
) -> Failed:
    assert item.timeout is not None
    limit = TimeLimit(None, on_error)
    return limit.failure(item, Deadline(0, item.timeout), stack, more=more)


async def _stop_in_asyncio(coroutine: Awaitable[Outcome], limit_seconds: float) -> _Stopped:
    stopped = _Stopped()
    try:
        async with asyncio.timeout(limit_seconds) as scope:
            await _watch(coroutine, stopped)
    except TimeoutError:
        pass
    stopped.is_late = scope.expired()
    return stopped


async def _stop_in_trio(coroutine: Awaitable[Outcome], limit_seconds: float) -> _Stopped:
    import trio

    stopped = _Stopped()
    with trio.move_on_after(limit_seconds) as scope:
        await _watch(coroutine, stopped)
    stopped.is_late = scope.cancel_called
    return stopped


async def _watch(coroutine: Awaitable[Outcome], stopped: _Stopped) -> None:
    try:
        stopped.outcome = await coroutine
    except BaseException as error:
        stopped.stack = traceback.extract_tb(error.__traceback__)
        raise
