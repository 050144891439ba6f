"""A connection to a server that survives losses: it connects, reconnects and retries.

Everything here runs on the asyncio loop where Cap'n Proto runs. Calls are handed over with `post`
and return futures. Where that loop runs, and so which kind of future callers get, is decided by
the two subclasses in `loops.py`.
"""

import asyncio
import contextlib
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import Future
from itertools import count
from typing import Any, Protocol, TypeVar

import capnp

from queueber.client.transport.backoff import Retries
from queueber.client.transport.futures import answer_future, fail_future
from queueber.client.transport.link import Link, Ref, Target, error_of, open_link
from queueber.errors import OutcomeUnknown, QueueberError, Unavailable
from queueber.model import ServerInfo

T = TypeVar("T")

_ANSWER_SECONDS_MAX = 60.0
"""How long an answer may take, beyond the time that a poll asks the server to wait."""

_WORKED_SECONDS = 1.0
"""A call that took this long reached a server that was working on it."""

_CLOSE_SECONDS_MAX = 1.0
"""How long closing waits until polled items that nobody will get are released."""

CLOSED = "the client is closed; connect again"
CLOSED_UNSENT = "the client was closed before the call was sent"
CLOSED_UNDER_WAY = "the client was closed while the call was under way"


class Sender(Protocol):
    """Sends calls over a connection. Closing the client calls these three, in this order."""

    def close(self) -> None:
        """Send no new calls, except releases of items that nobody will get. May run twice."""

    @property
    def is_releasing(self) -> bool:
        """Whether such releases are still under way."""

    def end(self) -> None:
        """Fail every call that was not sent."""


class Connection(ABC):
    loop: asyncio.AbstractEventLoop

    def __init__(self, target: Target) -> None:
        self.target = target
        self.server = ServerInfo("", "", 0, 0, 0, 0)
        """What the server described when this client last connected."""
        self.senders: list[Sender] = []
        self.tokens = count(1)
        """Numbers for polls, by which the server knows which one to withdraw."""
        self._link: Link | None = None
        self._ending: list[Link] = []
        """Lost ones whose sockets may not be closed yet."""
        self._tasks: set[asyncio.Task[Any]] = set()

    # --- any thread -------------------------------------------------------------------------------

    @abstractmethod
    def post(self, function: Callable[[], object]) -> None:
        """Run a function on the connection's loop, soon. May be called from any thread."""

    @abstractmethod
    def new_future(self) -> "Future[Any]":
        """A future that the caller can wait for; an asyncio future has the same methods."""

    def submit(self, make: Callable[[], Coroutine[Any, Any, T]]) -> "Future[T]":
        """Run a coroutine on the connection's loop; cancelling the future cancels it."""
        future: Future[T] = self.new_future()
        self.post(lambda: self.start(make(), future))
        return future

    def ask(
        self,
        send: Callable[[Any], Awaitable[Any]],
        read: Callable[[Any], T],
        *,
        is_repeatable: bool = True,
        of: Ref | None = None,
        work_seconds: float = 0.0,
    ) -> "Future[T]":
        """Send one call and read its response; see `call`. Most questions are safe to repeat."""

        async def ask() -> T:
            answer = await self.call(
                send, is_repeatable=is_repeatable, of=of, work_seconds=work_seconds
            )
            return read(answer)

        return self.submit(ask)

    # --- on the loop: begin and end ---------------------------------------------------------------

    async def open(self) -> None:
        """Connect, or raise `Unavailable` after `connect_seconds`."""
        self.loop = asyncio.get_running_loop()
        self._connecting = asyncio.Lock()
        await self.get_link(self.loop.time() + self.target.connect_seconds)

    async def shut(self) -> None:
        """Release items that nobody will get, fail calls without an answer, disconnect."""
        self.close_senders()
        try:
            await self._wait_for_releases()
        finally:
            for sender in self.senders:
                sender.end()
            for task in list(self._tasks):
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            ending, self._ending = self._ending, []
            if self._link is not None:
                self._link.close()
                ending.append(self._link)
                self._link = None
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_CLOSE_SECONDS_MAX):
                    for link in ending:
                        await link.wait_closed()

    def close_senders(self) -> None:
        for sender in self.senders:
            sender.close()

    async def _wait_for_releases(self) -> None:
        """Else the server would count the disconnect as a failed attempt of these items."""
        give_up_at = self.loop.time() + _CLOSE_SECONDS_MAX
        while self._link is not None and any(each.is_releasing for each in self.senders):
            await asyncio.sleep(0)  # batchers send in the next turn of the loop
            seconds = give_up_at - self.loop.time()
            if seconds <= 0 or not self._tasks:
                return
            await asyncio.wait(self._tasks, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)

    # --- on the loop: tasks -----------------------------------------------------------------------

    def start(
        self,
        coroutine: Coroutine[Any, Any, T],
        future: "Future[T]",
        unclaimed: Callable[[T], None] = lambda _: None,
        withdraw: Callable[[], object] | None = None,
    ) -> "asyncio.Task[None]":
        """Run a coroutine and set its result on a future.

        `unclaimed` gets a result that nobody waits for any more. Cancelling the future cancels the
        coroutine, or calls `withdraw` instead if that is given.
        """

        async def resolve() -> None:
            try:
                result = await coroutine
            except asyncio.CancelledError:
                fail_future(future, Unavailable(CLOSED_UNDER_WAY))
                raise
            except Exception as error:  # noqa: BLE001  the caller gets it, whatever it is
                fail_future(future, error)
            else:
                if not answer_future(future, result):
                    unclaimed(result)

        task = self.spawn(resolve())

        def cancel_task(done: "Future[T]") -> None:
            if done.cancelled():
                with contextlib.suppress(RuntimeError):  # the loop is closed already
                    self.loop.call_soon_threadsafe(withdraw or task.cancel)

        def ended(done: "asyncio.Task[None]") -> None:
            # A task that is cancelled before its first turn never starts its coroutine.
            if done.cancelled():
                coroutine.close()
                fail_future(future, Unavailable(CLOSED_UNSENT))

        task.add_done_callback(ended)
        future.add_done_callback(cancel_task)
        return task

    def spawn(self, coroutine: Coroutine[Any, Any, T]) -> "asyncio.Task[T]":
        """Run a coroutine in the background; closing the client cancels it."""
        task = self.loop.create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    # --- on the loop: calls -----------------------------------------------------------------------

    async def call(
        self,
        send: Callable[[Any], Awaitable[Any]],
        *,
        is_repeatable: bool,
        of: Ref | None = None,
        wait_seconds: float = 0.0,
        work_seconds: float = 0.0,
        is_wanted: Callable[[], bool] = lambda: True,
    ) -> Any:
        """Send a call and return its answer; retry it while that is safe and time is left.

        A call that the server refused for now is retried. After a lost connection it is retried
        only if it `is_repeatable`; else `OutcomeUnknown` is raised. The call asks the server to
        wait for `wait_seconds`, and the server may work on it for `work_seconds`: a connection that
        is lost during that time gets the full retry time again. A call that is not wanted any more
        is not retried. See `answer` for `send` and `of`.
        """
        give_up_at = self.give_up_at(wait_seconds)
        last_try_at = give_up_at + work_seconds
        retries: Retries | None = None
        while True:
            link = self._link or await self.get_link(give_up_at)
            sent_at = self.loop.time()
            try:
                return await self.answer(
                    link,
                    send,
                    is_repeatable=is_repeatable,
                    of=of,
                    wait_seconds=wait_seconds + work_seconds,
                )
            except QueueberError as error:
                now = self.loop.time()
                if now > sent_at + _WORKED_SECONDS and now < last_try_at:
                    retries, give_up_at = None, self.give_up_at(wait_seconds)
                retries = retries or Retries(give_up_at)
                if not error.retryable or not is_wanted() or not await retries.pause():
                    raise

    def give_up_at(self, wait_seconds: float = 0.0) -> float:
        """When a call that begins now is not retried any more."""
        return self.loop.time() + self.target.retry_seconds + wait_seconds

    async def answer(
        self,
        link: Link,
        send: Callable[[Any], Awaitable[Any]],
        *,
        is_repeatable: bool,
        of: Ref | None = None,
        wait_seconds: float = 0.0,
    ) -> Any:
        """Send a call once; raise what went wrong, with `OutcomeUnknown` if it may have worked.

        `send` gets the capability that the call is a method `of`; or the link if there is none.
        """
        try:
            async with asyncio.timeout(_ANSWER_SECONDS_MAX + wait_seconds):
                return await send(link if of is None else link.capability(of))
        except TimeoutError:
            raise self._lost(link, "no answer came in time", is_repeatable) from None
        except asyncio.CancelledError:
            if is_repeatable:
                raise
            raise self._unknown("the client was closed") from None
        except capnp.KjException as failure:
            if failure.type == "DISCONNECTED":
                raise self._lost(link, "the connection was lost", is_repeatable) from None
            if of is not None:
                # Its capability may be broken; getting a new one costs no round trip.
                link.forget(of)
            raise error_of(failure.description) from None

    def _lost(self, link: Link, what: str, is_repeatable: bool) -> QueueberError:
        if self._link is link:
            self._link = None
        self._end(link)
        if is_repeatable:
            return Unavailable(f"{what} at {self.target.address}")
        return self._unknown(what)

    def _unknown(self, what: str) -> OutcomeUnknown:
        return OutcomeUnknown(
            f"{what} while the call to {self.target.address} was under way: "
            "it may or may not have taken effect"
        )

    async def get_link(self, give_up_at: float) -> Link:
        """The live link; connects again if it was lost."""
        if self._link is not None:
            return self._link
        retries = Retries(give_up_at)
        while True:
            try:
                async with asyncio.timeout_at(max(give_up_at, self.loop.time() + 1)):
                    async with self._connecting:
                        if self._link is None:
                            link = await open_link(self.target)
                            self._link, self.server = link, link.server
                            self.spawn(self._watch(link))
                        return self._link
            except TimeoutError:
                raise Unavailable(f"the server at {self.target.address} does not answer") from None
            except Unavailable:
                if not await retries.pause():
                    raise

    async def _watch(self, link: Link) -> None:
        """Notice a connection that ends while it is idle, so that no call is sent into it."""
        await link.wait_lost()
        if self._link is link:
            self._link = None
            self._end(link)

    def _end(self, link: Link) -> None:
        """Close it. With TLS that takes a round trip, and the loop must not end before."""
        link.close()
        if self.target.tls is not None:
            self._ending = [each for each in self._ending if not each.socket.is_over.is_set()]
            self._ending.append(link)
