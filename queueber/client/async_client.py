"""The client for asyncio and for trio. Its calls await; all else is as in `client.py`.

In asyncio the core runs on the program's own loop. In trio it runs on a thread, and the program
needs nothing of asyncio. Cancelling a call withdraws it where that is still possible.
"""

import asyncio
from collections.abc import Generator, Iterable
from concurrent.futures import Future
from typing import Any, Self, TypeVar

import sniffio

from queueber.client.admin import AdminCalls
from queueber.client.arguments import Contents, Delay, to_ids
from queueber.client.calls import CallsByQueue, QueueCalls
from queueber.client.client import CONNECT_TIMEOUT_SECONDS, RETRY_TIMEOUT_SECONDS
from queueber.client.hosts import LoopCore, ThreadCore
from queueber.client.leased import Leased
from queueber.config import DEFAULT_LISTEN
from queueber.model import ServerInfo, Stats

T = TypeVar("T")


def connect_async(
    address: str = DEFAULT_LISTEN,
    *,
    connect_timeout: float = CONNECT_TIMEOUT_SECONDS,
    retry_timeout: float = RETRY_TIMEOUT_SECONDS,
) -> "AsyncClient":
    """A client for `async with` or `await`, which connect. See `connect` for the arguments."""
    return AsyncClient(address, connect_timeout=connect_timeout, retry_timeout=retry_timeout)


class AsyncClient:
    def __init__(self, address: str, *, connect_timeout: float, retry_timeout: float) -> None:
        self._address = address
        self._connect_timeout = connect_timeout
        self._retry_timeout = retry_timeout

    async def __aenter__(self) -> Self:
        if sniffio.current_async_library() == "trio":
            threaded = ThreadCore(
                self._address,
                connect_seconds=self._connect_timeout,
                retry_seconds=self._retry_timeout,
            )
            await _wait(threaded.ready)
            self._core: ThreadCore | LoopCore = threaded
        else:
            on_loop = LoopCore(self._address, retry_seconds=self._retry_timeout)
            await on_loop.open(self._connect_timeout)
            self._core = on_loop
        self._admin = AdminCalls(self._core)
        self._queues = CallsByQueue(self._core)
        return self

    def __await__(self) -> Generator[Any, Any, Self]:
        """`client = await connect_async(...)`, for those who call `aclose` themselves."""
        return self.__aenter__().__await__()

    async def __aexit__(self, *exc_info: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """End the connection. Calls under way fail."""
        if isinstance(self._core, LoopCore):
            await self._core.aclose()
        else:
            self._core.close()

    def queue(self, name: str = "default") -> "AsyncQueue":
        """A queue by name; the server creates it when it is first used."""
        return AsyncQueue(self._queues[name])

    async def create_queue(
        self, name: str, *, items_max: int = 0, bytes_max: int = 0, item_bytes_max: int = 0
    ) -> bool:
        """Create a queue with settings (0: no limit); False when it exists with the same."""
        return await _wait(
            self._admin.create(
                name, items_max=items_max, bytes_max=bytes_max, item_bytes_max=item_bytes_max
            )
        )

    async def configure_queue(
        self, name: str, *, items_max: int = 0, bytes_max: int = 0, item_bytes_max: int = 0
    ) -> None:
        """Replace the settings of a queue."""
        await _wait(
            self._admin.configure(
                name, items_max=items_max, bytes_max=bytes_max, item_bytes_max=item_bytes_max
            )
        )

    async def delete_queue(self, name: str) -> bool:
        """Delete a queue with all its items; False when there is none."""
        return await _wait(self._admin.delete(name))

    async def queues(self) -> list[Stats]:
        """The statistics of every queue, in order of name."""
        return await _wait(self._admin.list_queues())

    async def server(self) -> ServerInfo:
        """The server's version and limits."""
        return await _wait(self._admin.describe())


class AsyncQueue:
    def __init__(self, calls: QueueCalls) -> None:
        self._calls = calls

    @property
    def name(self) -> str:
        return self._calls.name

    async def add(self, contents: Contents, *, delay: Delay = 0) -> list[bytes]:
        """Store items, all or none, and return their ids in order."""
        return await _wait(self._calls.add(contents, delay))

    async def poll(self, count: int = 1, *, lease: float = 60, wait: float = 0) -> "AsyncLease":
        """Lease up to `count` items for `lease` seconds; with none ready, wait up to `wait`."""
        future = self._calls.poll(count, lease, wait)
        try:
            return AsyncLease(self._calls, await _wait(future))
        except BaseException:
            self._calls.give_back(future)
            raise

    async def remove(self, ids: bytes | Iterable[bytes], lease: bytes) -> list[bool]:
        """For each id, whether the lease held it and it is now gone."""
        return await _wait(self._calls.remove(ids, lease))

    async def extend(self, lease: bytes, seconds: float) -> bool:
        """Let the lease end `seconds` from now; False when it has ended already."""
        return await _wait(self._calls.extend(lease, seconds))

    async def stats(self) -> Stats:
        return await _wait(self._calls.stats())


class AsyncLease(Leased):
    """Items that are yours for a while. True when there are any."""

    async def extend(self, seconds: float) -> bool:
        """End `seconds` from now instead; False when the lease has ended already."""
        return await _wait(self._calls.extend(self.id, seconds))

    async def remove(self, ids: bytes | Iterable[bytes] | None = None) -> list[bool]:
        """Remove items that are done, all of them when none are named."""
        chosen = self.ids if ids is None else to_ids("ids", ids)
        return await _wait(self._calls.remove(chosen, self.id)) if chosen else []


async def _wait(future: "Future[T]") -> T:
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
