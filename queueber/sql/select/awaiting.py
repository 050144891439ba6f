"""Work on threads, awaited in asyncio or in trio."""

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import TypeVar

import sniffio

from queueber.client.transport.futures import wait_for_async

T = TypeVar("T")


async def wait_in_loop(future: "Future[T]") -> T:
    """Await a future of another thread. A caller that is cancelled cancels it."""
    if sniffio.current_async_library() == "trio":
        return await wait_for_async(future)
    return await asyncio.wrap_future(future)


async def on_thread(threads: Executor, work: Callable[[], T]) -> T:
    return await wait_in_loop(threads.submit(work))
