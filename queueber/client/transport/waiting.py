"""How callers wait for a future of the connection: by blocking, or awaiting in asyncio or trio."""

import asyncio
from concurrent.futures import Future
from typing import TypeVar

T = TypeVar("T")


def wait_for(future: "Future[T]") -> T:
    try:
        return future.result()
    except BaseException:
        # Interrupted: a poll that nobody waits for must not lease anything.
        future.cancel()
        raise


async def wait_for_async(future: "Future[T]") -> T:
    if isinstance(future, asyncio.Future):
        return await future
    import trio  # a program that is not in trio need not load it

    token = trio.lowlevel.current_trio_token()
    is_done = trio.Event()

    def wake(_: "Future[T]") -> None:
        # The trio program may have ended meanwhile, and nobody waits any more.
        try:
            token.run_sync_soon(is_done.set)
        except trio.RunFinishedError:
            return

    future.add_done_callback(wake)
    try:
        await is_done.wait()
    except trio.Cancelled:
        future.cancel()
        raise
    return future.result()
