"""Where a core runs: on a thread of its own, or on the asyncio loop of its user.

Plain code and trio need the thread: Cap'n Proto wants an asyncio loop. A program that has one
already runs the core on it, and its calls change no threads.
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

from queueber.client.core import Core
from queueber.client.futures import FUTURE_IS_DONE, fail_future
from queueber.errors import Unavailable

_INBOX_MAX = 100_000
"""Operations that may wait to be taken up; beyond, callers are told to slow down."""


class ThreadCore(Core):
    """A core on a thread of its own. May be used from every thread."""

    def __init__(self, address: str, *, connect_seconds: float, retry_seconds: float) -> None:
        super().__init__(address, retry_seconds=retry_seconds)
        self.ready: Future[None] = Future()
        self._inbox: deque[Callable[[], object]] = deque()
        self._is_wake_pending = False
        self._is_closed = False
        self._lock = threading.Lock()
        self._began = threading.Event()
        self._process_id = os.getpid()
        self._thread = threading.Thread(
            target=lambda: asyncio.run(self._main(connect_seconds)),
            name=f"queueber-client-{address}",
            daemon=True,
        )
        self._thread.start()
        _open_cores.add(self)

    def post(self, function: Callable[[], object]) -> None:
        if self._process_id != os.getpid():
            raise Unavailable("the client was made before a fork; connect in the child itself")
        with self._lock:
            if self._is_closed:
                raise _closed()
            if len(self._inbox) >= _INBOX_MAX:
                raise Unavailable(f"{_INBOX_MAX} operations wait to be sent; slow down")
            self._inbox.append(function)
            if not self._is_wake_pending:
                self._is_wake_pending = True
                self._loop.call_soon_threadsafe(self._run_inbox)

    def new_future(self) -> "Future[Any]":
        return Future()

    def close(self) -> None:
        with self._lock:
            is_closed, self._is_closed = self._is_closed, True
            if is_closed or not self._thread.is_alive() or self._process_id != os.getpid():
                return
            self._began.wait()
            self._loop.call_soon_threadsafe(self._begin_closing)
        if threading.current_thread() is not self._thread:
            self._thread.join()

    def _begin_closing(self) -> None:
        # In one turn: no answer that comes from now on goes to somebody who could not use it.
        self._run_inbox()
        self.close_sharers()
        self._stop.set()

    def _run_inbox(self) -> None:
        self._is_wake_pending = False
        inbox = self._inbox
        for _ in range(len(inbox)):
            inbox.popleft()()

    async def _main(self, connect_seconds: float) -> None:
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        self._began.set()
        async with capnp.kj_loop():
            opening = asyncio.ensure_future(self.open(connect_seconds))
            stopping = asyncio.ensure_future(self._stop.wait())
            # Whoever connects may give up before it is done.
            await asyncio.wait([opening, stopping], return_when=asyncio.FIRST_COMPLETED)
            if not opening.done():
                opening.cancel()
                await asyncio.wait([opening])
            failure = _closed() if opening.cancelled() else opening.exception()
            if failure is not None:
                self._is_closed = True
                stopping.cancel()
                fail_future(self.ready, failure)
                return
            with contextlib.suppress(*FUTURE_IS_DONE):
                self.ready.set_result(None)
            await stopping
            await self.shut()


class LoopCore(Core):
    """A core on the running asyncio loop. May be used from that loop only."""

    def __init__(self, address: str, *, retry_seconds: float) -> None:
        super().__init__(address, retry_seconds=retry_seconds)
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
            raise _closed()
        function()

    def new_future(self) -> "Future[Any]":
        # It has every method of the other kind that the core uses.
        return self._loop.create_future()  # type: ignore[return-value]


def _closed() -> Unavailable:
    return Unavailable("the client is closed; connect again")


# --- one Cap'n Proto loop for all cores of an asyncio loop ----------------------------------------

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


# --- threads end before the interpreter does ------------------------------------------------------

_open_cores: "weakref.WeakSet[ThreadCore]" = weakref.WeakSet()


@atexit.register
def _close_open_cores() -> None:
    """A thread inside the Cap'n Proto library must not outlive the interpreter."""
    for core in list(_open_cores):
        core.close()
