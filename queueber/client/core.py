"""The connection core: a thread with the Cap'n Proto loop, shared by every face of a client.

Faces hand over operations and get a `concurrent.futures.Future` back, from any thread. The core
connects, connects again after a loss, repeats what may be repeated, and says so when it cannot know
what became of a call.
"""

import asyncio
import atexit
import contextlib
import threading
import weakref
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import Future, InvalidStateError
from random import Random
from typing import Any, TypeVar

import capnp

from queueber.client.link import Link, open_link
from queueber.errors import OutcomeUnknown, QueueberError, Unavailable, from_wire
from queueber.model import ServerInfo

T = TypeVar("T")

_BACKOFF_SECONDS_FIRST = 0.02
_BACKOFF_SECONDS_MAX = 2.0
_CALL_SECONDS_MAX = 60.0
"""How long an answer may take, beyond the time that a poll is asked to wait."""

_INBOX_MAX = 100_000
"""Operations that may wait to be taken up; beyond, callers are told to slow down."""


class Core:
    def __init__(self, address: str, *, connect_seconds: float, retry_seconds: float) -> None:
        """Connect, or raise `Unavailable` after `connect_seconds`.

        `retry_seconds` is how long a call that nothing came of is tried again.
        """
        self.address = address
        self.retry_seconds = retry_seconds
        self._inbox: deque[Callable[[], None]] = deque()
        self._is_wake_pending = False
        self._is_closed = False
        self._random = Random()
        self._link: Link | None = None
        self.server = ServerInfo("", "", 0, 0, 0, 0)
        """What the server said of itself when it was last reached."""
        self._tasks: set[asyncio.Task[None]] = set()
        self.on_close: list[Callable[[], None]] = []
        """What to do with operations that were not sent when the client closes."""
        self._ready: Future[None] = Future()
        self._thread = threading.Thread(
            target=lambda: asyncio.run(self._main(connect_seconds)),
            name=f"queueber-client-{address}",
            daemon=True,
        )
        self._thread.start()

    def wait_ready(self) -> None:
        self._ready.result()
        _open_cores.add(self)

    @property
    def ready(self) -> "Future[None]":
        return self._ready

    # --- any thread -------------------------------------------------------------------------------

    def post(self, function: Callable[[], None]) -> None:
        """Run a function on the core's thread. What is posted together is run in one turn."""
        if self._is_closed:
            raise Unavailable("the client is closed; connect again")
        if len(self._inbox) >= _INBOX_MAX:
            raise Unavailable(f"{_INBOX_MAX} operations wait to be sent; slow down")
        self._inbox.append(function)
        if not self._is_wake_pending:
            self._is_wake_pending = True
            self._loop.call_soon_threadsafe(self._run_inbox)

    def submit(self, make: Callable[[], Coroutine[Any, Any, T]]) -> "Future[T]":
        """Run a coroutine on the core's thread; cancelling the future cancels it."""
        future: Future[T] = Future()
        self.post(lambda: self.start(make(), future))
        return future

    def close(self) -> None:
        if self._is_closed or not self._thread.is_alive():
            self._is_closed = True
            return
        self._is_closed = True
        self._loop.call_soon_threadsafe(self._stop.set)
        if threading.current_thread() is not self._thread:
            self._thread.join()

    # --- the core's thread ------------------------------------------------------------------------

    def start(
        self,
        coroutine: Coroutine[Any, Any, T],
        future: "Future[T]",
        unclaimed: Callable[[T], None] = lambda _: None,
    ) -> None:
        """Run a coroutine into a future; `unclaimed` gets a result that nobody waits for."""
        task = self.spawn(self._resolve(coroutine, future, unclaimed))

        def cancel_task(done: "Future[T]") -> None:
            if done.cancelled():
                with contextlib.suppress(RuntimeError):  # the loop is closed already
                    self._loop.call_soon_threadsafe(task.cancel)

        future.add_done_callback(cancel_task)

    def spawn(self, coroutine: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        """Run a coroutine that answers by itself; it is cancelled when the client closes."""
        task = self._loop.create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def call_soon(self, function: Callable[[], None]) -> None:
        self._loop.call_soon(function)

    def time(self) -> float:
        return self._loop.time()

    async def call(
        self,
        send: Callable[[Link], Awaitable[Any]],
        *,
        is_repeatable: bool,
        queue: str | None = None,
        wait_seconds: float = 0.0,
    ) -> Any:
        """Send a call and return its answer.

        A call that was refused for now is sent again, and so is one whose connection was lost if it
        `is_repeatable`; else its outcome is unknown, and `OutcomeUnknown` says so.
        """
        give_up_at = self._loop.time() + self.retry_seconds + wait_seconds
        backoff_seconds = _BACKOFF_SECONDS_FIRST
        while True:
            link = await self._get_link(give_up_at)
            try:
                async with asyncio.timeout(_CALL_SECONDS_MAX + wait_seconds):
                    return await send(link)
            except TimeoutError:
                error = self._lost(link, "no answer came in time", is_repeatable)
            except capnp.KjException as failure:
                if failure.type == "DISCONNECTED":
                    error = self._lost(link, "the connection was lost", is_repeatable)
                else:
                    error = from_wire(failure.description)
                    if queue is not None:
                        # Its capability may be the broken one; asking again costs no round trip.
                        link.forget_queue(queue)
            delay = backoff_seconds * self._random.uniform(0.5, 1.0)
            if not error.retryable or self._loop.time() + delay >= give_up_at:
                raise error
            await asyncio.sleep(delay)
            backoff_seconds = min(2 * backoff_seconds, _BACKOFF_SECONDS_MAX)

    def _lost(self, link: Link, what: str, is_repeatable: bool) -> QueueberError:
        if self._link is link:
            self._link = None
        link.close()
        if is_repeatable:
            return Unavailable(f"{what} at {self.address}")
        return OutcomeUnknown(
            f"{what} while the call to {self.address} was under way: "
            "it may or may not have taken effect"
        )

    async def _get_link(self, give_up_at: float) -> Link:
        if self._link is not None:
            return self._link
        async with self._connecting:
            backoff_seconds = _BACKOFF_SECONDS_FIRST
            while self._link is None:
                try:
                    link = await open_link(self.address)
                    self._link, self.server = link, link.server
                except Unavailable:
                    delay = backoff_seconds * self._random.uniform(0.5, 1.0)
                    if self._loop.time() + delay >= give_up_at:
                        raise
                    await asyncio.sleep(delay)
                    backoff_seconds = min(2 * backoff_seconds, _BACKOFF_SECONDS_MAX)
            return self._link

    def _run_inbox(self) -> None:
        self._is_wake_pending = False
        inbox = self._inbox
        for _ in range(len(inbox)):
            inbox.popleft()()

    async def _resolve(
        self,
        coroutine: Coroutine[Any, Any, T],
        future: "Future[T]",
        unclaimed: Callable[[T], None],
    ) -> None:
        try:
            result = await coroutine
        except asyncio.CancelledError:
            _fail(future, Unavailable("the client was closed while the call was under way"))
            raise
        except Exception as error:  # noqa: BLE001  whatever it is belongs to the caller
            _fail(future, error)
        else:
            try:
                future.set_result(result)
            except InvalidStateError:
                unclaimed(result)

    async def _main(self, connect_seconds: float) -> None:
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        self._connecting = asyncio.Lock()
        async with capnp.kj_loop():
            try:
                await self._get_link(self._loop.time() + connect_seconds)
            except QueueberError as error:
                self._is_closed = True
                self._ready.set_exception(error)
                return
            self._ready.set_result(None)
            await self._stop.wait()
            self._run_inbox()
            for close in self.on_close:
                close()
            for task in list(self._tasks):
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            if self._link is not None:
                self._link.close()


def _fail(future: "Future[Any]", error: Exception) -> None:
    with contextlib.suppress(InvalidStateError):
        future.set_exception(error)


_open_cores: "weakref.WeakSet[Core]" = weakref.WeakSet()


def _close_open_cores() -> None:
    for core in list(_open_cores):
        core.close()


# Before the interpreter goes: a thread inside the Cap'n Proto library must not outlive it.
atexit.register(_close_open_cores)
