"""A connection on its own thread, for plain code and for trio.

Cap'n Proto needs an asyncio loop, and such programs have none.
"""

import asyncio
import atexit
import contextlib
import os
import threading
import weakref
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import capnp

from queueber.client.transport.connection import CLOSED, Connection
from queueber.client.transport.futures import FUTURE_IS_DONE, fail_future
from queueber.errors import Unavailable

_INBOX_MAX = 100_000
"""Operations that may wait for the thread; beyond that, callers are told to slow down."""


class ThreadConnection(Connection):
    """A connection whose loop runs on its own thread. May be used from every thread."""

    def __init__(
        self, address: str, *, connect_seconds: float, retry_seconds: float, name: str = ""
    ) -> None:
        super().__init__(address, retry_seconds=retry_seconds, name=name)
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
        # In one turn of the loop: answers that come from now on go to nobody who is gone.
        self._run_inbox()
        self.close_senders()
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
            with contextlib.suppress(*FUTURE_IS_DONE):
                self.ready.set_result(None)
            await stopping
            await self.shut()


_open_connections: "weakref.WeakSet[ThreadConnection]" = weakref.WeakSet()


@atexit.register
def _close_open_connections() -> None:
    """A thread inside the Cap'n Proto library must not outlive the interpreter."""
    for connection in list(_open_connections):
        connection.close()
