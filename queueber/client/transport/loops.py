"""Where a connection's loop runs: on the program's asyncio loop, or on a thread of its own.

Cap'n Proto needs an asyncio loop. Plain code and trio programs have none, so they get a thread.
"""

import asyncio
import atexit
import contextlib
import os
import threading
import weakref
from collections import deque
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Future
from typing import Any

import capnp
import sniffio
import uvloop

from queueber.client.transport.connection import CLOSED, Connection
from queueber.client.transport.futures import answer_future, fail_future, wait_for, wait_for_async
from queueber.client.transport.link import Target
from queueber.errors import Unavailable

_INBOX_MAX = 100_000
"""Operations that may wait for the thread; beyond that, callers are told to slow down."""


def open_connection(target: Target) -> Connection:
    """Connect; raise `Unavailable` after `connect_seconds`."""
    connection = ThreadConnection(target)
    wait_for(connection.ready)
    return connection


async def open_connection_async(target: Target) -> Connection:
    """Connect, on the running loop of asyncio, or on a thread if the program runs trio."""
    if sniffio.current_async_library() == "trio":
        on_thread = ThreadConnection(target)
        await wait_for_async(on_thread.ready)
        return on_thread
    on_loop = LoopConnection(target)
    await on_loop.open()
    return on_loop


def close_connection(connection: Connection) -> None:
    assert isinstance(connection, ThreadConnection)
    connection.close()


async def close_connection_async(connection: Connection) -> None:
    if isinstance(connection, LoopConnection):
        await connection.aclose()
        return
    import trio  # a program that does not run trio need not load it

    # Shielded: a task that is cancelled closes its client all the same.
    with trio.CancelScope(shield=True):
        await trio.to_thread.run_sync(close_connection, connection)


# --- on a thread ----------------------------------------------------------------------------------


class ThreadConnection(Connection):
    """A connection whose loop runs on its own thread. May be used from every thread."""

    def __init__(self, target: Target) -> None:
        super().__init__(target)
        self.ready: Future[None] = Future()
        self._inbox: deque[Callable[[], object]] = deque()
        self._is_wake_pending = False
        self._is_closed = False
        self._lock = threading.Lock()
        self._began = threading.Event()
        self._process_id = os.getpid()
        self._thread = threading.Thread(
            target=self._run,
            name=f"queueber-client-{target.address}",
            daemon=True,
        )
        self._thread.start()
        _open_connections.add(self)

    def post(self, function: Callable[[], object]) -> None:
        if self._process_id != os.getpid():
            raise Unavailable("the client was made before a fork; connect in the child itself")
        with self._lock:
            if self._is_closed:
                raise Unavailable(CLOSED)
            if len(self._inbox) >= _INBOX_MAX:
                raise Unavailable(f"{_INBOX_MAX} operations wait to be sent; slow down")
            self._inbox.append(function)
            if not self._is_wake_pending:
                self._is_wake_pending = True
                self.loop.call_soon_threadsafe(self._run_inbox)

    def new_future(self) -> "Future[Any]":
        return Future()

    def close(self) -> None:
        with self._lock:
            is_closed, self._is_closed = self._is_closed, True
            if is_closed or not self._thread.is_alive() or self._process_id != os.getpid():
                return
            self._began.wait()
            self.loop.call_soon_threadsafe(self._begin_closing)
        if threading.current_thread() is not self._thread:
            self._thread.join()

    def _begin_closing(self) -> None:
        # In one turn of the loop: answers that come from now on go to nobody who is gone.
        self._run_inbox()
        self.close_senders()
        self._stop.set()

    def _run_inbox(self) -> None:
        self._is_wake_pending = False
        inbox = self._inbox
        for _ in range(len(inbox)):
            inbox.popleft()()

    def _run(self) -> None:
        # uvloop's loop, as in the server: a call costs less than on asyncio's own.
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(self._main())

    async def _main(self) -> None:
        self.loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        self._began.set()
        async with capnp.kj_loop():
            opening = asyncio.ensure_future(self.open())
            stopping = asyncio.ensure_future(self._stop.wait())
            # The caller may close before the connection is there.
            await asyncio.wait([opening, stopping], return_when=asyncio.FIRST_COMPLETED)
            if not opening.done():
                opening.cancel()
                await asyncio.wait([opening])
            failure = Unavailable(CLOSED) if opening.cancelled() else opening.exception()
            if failure is not None:
                self._is_closed = True
                stopping.cancel()
                fail_future(self.ready, failure)
                return
            answer_future(self.ready, None)
            await stopping
            await self.shut()


_open_connections: "weakref.WeakSet[ThreadConnection]" = weakref.WeakSet()


@atexit.register
def _close_open_connections() -> None:
    """A thread inside the Cap'n Proto library must not outlive the interpreter."""
    for connection in list(_open_connections):
        connection.close()


# --- on the program's loop ------------------------------------------------------------------------


class LoopConnection(Connection):
    """A connection on the running asyncio loop. May be used from that loop only."""

    def __init__(self, target: Target) -> None:
        super().__init__(target)
        self._is_closed = False
        self._stack = contextlib.AsyncExitStack()

    async def open(self) -> None:
        await self._stack.enter_async_context(_shared_kj_loop())
        try:
            await super().open()
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
        return self.loop.create_future()  # type: ignore[return-value]


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
