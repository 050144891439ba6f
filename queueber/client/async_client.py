"""The client for asyncio and for trio. Its calls await; all else is as in `client.py`.

In asyncio the core runs on the program's own loop. In trio it runs on a thread, and the program
needs nothing of asyncio. Cancelling a call withdraws it where that is still possible; items that a
cancelled poll brings are given back.
"""

from collections.abc import Generator
from typing import Any, Self, Unpack

import sniffio

from queueber.client.admin import AdminCalls
from queueber.client.async_queue import AsyncQueue
from queueber.client.calls import CallsByQueue
from queueber.client.client import CONNECT_TIMEOUT_SECONDS, RETRY_TIMEOUT_SECONDS
from queueber.client.hosts import LoopCore, ThreadCore
from queueber.client.settings import SettingsArguments
from queueber.client.waiting import wait_for_async
from queueber.config import DEFAULT_LISTEN
from queueber.model import ServerInfo, Stats


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
            await wait_for_async(threaded.ready)
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
        """End the connection. Calls under way fail.

        Items that polls had on their way are given back first, which may take up to a second.
        """
        if isinstance(self._core, LoopCore):
            await self._core.aclose()
        else:
            import trio

            # Shielded: who is cancelled closes all the same.
            with trio.CancelScope(shield=True):
                await trio.to_thread.run_sync(self._core.close)

    def queue(self, name: str = "default", *, must_exist: bool = False) -> AsyncQueue:
        """A queue by name; the server creates it when it is first used.

        One that `must_exist` is not created: without it, calls raise `NotFound`.
        """
        return AsyncQueue(self._queues.of(name, must_exist=must_exist))

    async def create_queue(self, name: str, **settings: Unpack[SettingsArguments]) -> bool:
        """Create a queue with settings; False when it exists with the same."""
        return await wait_for_async(self._admin.create(name, **settings))

    async def configure_queue(self, name: str, **settings: Unpack[SettingsArguments]) -> None:
        """Change the settings that are named; the others stay as they are."""
        await wait_for_async(self._admin.configure(name, **settings))

    async def delete_queue(self, name: str) -> bool:
        """Delete a queue with all its items; False when there is none."""
        return await wait_for_async(self._admin.delete(name))

    async def queues(self) -> list[Stats]:
        """The statistics of every queue, in order of name."""
        return await wait_for_async(self._admin.list_queues())

    async def server(self) -> ServerInfo:
        """The server's version and limits."""
        return await wait_for_async(self._admin.describe())
