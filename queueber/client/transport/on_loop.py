"""A connection on the asyncio loop of the program that uses it: calls change no threads."""

import asyncio
import contextlib
import weakref
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Future
from typing import Any

import capnp

from queueber.client.transport.connection import CLOSED, Connection
from queueber.errors import Unavailable


class LoopConnection(Connection):
    """A connection on the running asyncio loop. May be used from that loop only."""

    def __init__(self, address: str, *, retry_seconds: float, name: str = "") -> None:
        super().__init__(address, retry_seconds=retry_seconds, name=name)
        self._is_closed = False
        self._stack = contextlib.AsyncExitStack()

    async def open(self, connect_seconds: float) -> None:
        await self._stack.enter_async_context(_shared_kj_loop())
        try:
            await super().open(connect_seconds)
        except BaseException:
            await self._stack.aclose()
            raise

    async def aclose(self) -> None:
        if not self._is_closed:
            self._is_closed = True
            try:
                await self.shut()
            finally:
                await self._stack.aclose()

    def post(self, function: Callable[[], object]) -> None:
        if self._is_closed:
            raise Unavailable(CLOSED)
        function()

    def new_future(self) -> "Future[Any]":
        # It has every method of a concurrent future that the connection uses.
        return self._loop.create_future()  # type: ignore[return-value]


# --- one Cap'n Proto loop for all connections of an asyncio loop ----------------------------------

_users: "weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, int]" = weakref.WeakKeyDictionary()
_kj_loops: "weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, Any]" = weakref.WeakKeyDictionary()


@contextlib.asynccontextmanager
async def _shared_kj_loop() -> AsyncIterator[None]:
    """The Cap'n Proto loop of the running asyncio loop, started by its first user."""
    loop = asyncio.get_running_loop()
    if loop not in _users and hasattr(loop, "_kj_loop"):
        # The program itself has started one, and will end it.
        yield
        return
    if loop not in _users:
        _kj_loops[loop] = capnp.kj_loop()
        await _kj_loops[loop].__aenter__()
    _users[loop] = _users.get(loop, 0) + 1
    try:
        yield
    finally:
        _users[loop] -= 1
        if _users[loop] == 0:
            del _users[loop]
            await _kj_loops.pop(loop).__aexit__(None, None, None)
