"""Futures that the connection's loop sets and callers wait for: concurrent or asyncio ones."""

import asyncio
import contextlib
import copy
import threading
import traceback
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import InvalidStateError as FutureIsDone
from typing import Any, TypeVar

import sniffio

from queueber.errors import QueueberError

T = TypeVar("T")

_FUTURE_IS_DONE = (FutureIsDone, asyncio.InvalidStateError)
"""What either kind raises on setting a result that nobody waits for any more."""

# --- callers --------------------------------------------------------------------------------------


def wait_for(future: "Future[T]") -> T:
    try:
        return future.result()
    except BaseException:
        # Interrupted: a poll that nobody waits for must not lease anything.
        future.cancel()
        raise


async def wait_for_async(future: "Future[T]") -> T:
    """Await a future in asyncio or in trio."""
    if isinstance(future, asyncio.Future):
        return await future
    if sniffio.current_async_library() == "asyncio":
        # What runs on the connection's own loop for a program that blocks, or is in trio.
        return await asyncio.wrap_future(future)
    import trio  # a program that is not in trio need not load it

    token = trio.lowlevel.current_trio_token()
    is_done = trio.Event()

    def wake(_: "Future[T]") -> None:
        # The trio program may have ended meanwhile, and nobody waits any more.
        with contextlib.suppress(trio.RunFinishedError):
            token.run_sync_soon(is_done.set)

    future.add_done_callback(wake)
    try:
        await is_done.wait()
    except trio.Cancelled:
        future.cancel()
        raise
    return future.result()


async def wait_for_async_up_to(future: "Future[T]", seconds: float) -> T | None:
    """As `wait_for_async`; None: there is nothing after so many seconds. The timer is that of the
    loop that waits, and an error of the future, also `TimeoutError`, is raised as it is."""
    if sniffio.current_async_library() == "asyncio":
        try:
            async with asyncio.timeout(seconds) as timer:
                return await wait_for_async(future)
        except TimeoutError:
            if not timer.expired():
                raise
        return None
    import trio

    with trio.move_on_after(seconds):
        return await wait_for_async(future)
    return None


async def call_in_thread(function: Callable[..., T], *arguments: Any) -> T:
    """What a function that blocks returns, awaited in asyncio or in trio."""
    future: Future[T] = Future()

    def call() -> None:
        try:
            answer_future(future, function(*arguments))
        except BaseException as error:  # noqa: BLE001  whoever waits gets it
            fail_future(future, error)

    threading.Thread(target=call, name="queueber-call", daemon=True).start()
    return await wait_for_async(future)


def ignore_outcome(future: "Future[Any]") -> None:
    """Nobody waits for it: an error is not reported as one that was never looked at."""
    future.add_done_callback(lambda done: done.cancelled() or done.exception())


# --- the loop -------------------------------------------------------------------------------------


def answer_future(future: "Future[T]", result: T) -> bool:
    """Set the result; False when the caller does not wait any more."""
    try:
        future.set_result(result)
    except _FUTURE_IS_DONE:
        return False
    return True


def fail_future(future: "Future[Any]", error: BaseException) -> None:
    """Set an error on a future, unless the caller does not wait any more.

    The traceback's frames are left out. They hold objects of Cap'n Proto, which must be freed on
    the thread of their loop; if the error took them to another thread, that thread's garbage
    collector would free them and crash the process.
    """
    if isinstance(error, QueueberError):
        # A copy for each: one failure may be raised in several callers' threads.
        error = copy.copy(error)
    else:
        # A bug of ours: keep the line numbers of its traceback.
        seen: BaseException | None = error
        while seen is not None:
            traceback.clear_frames(seen.__traceback__)
            seen = seen.__context__
    with contextlib.suppress(*_FUTURE_IS_DONE):
        future.set_exception(error)
