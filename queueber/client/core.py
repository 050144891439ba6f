"""The connection core: calls over one connection, on the loop where Cap'n Proto runs.

The core connects, connects again after a loss, repeats what may be repeated, and says so when it
cannot know what became of a call. Faces hand operations over with `post` and get futures back;
where the core runs, and so what kind of futures, is the affair of its subclasses in `hosts.py`.
"""

import asyncio
import contextlib
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import Future
from itertools import count
from random import uniform
from typing import Any, Protocol, TypeVar

import capnp

from queueber.client.futures import FUTURE_IS_DONE, fail_future
from queueber.client.link import Link, open_link
from queueber.errors import OutcomeUnknown, QueueberError, Unavailable, from_wire
from queueber.model import ServerInfo

T = TypeVar("T")

_BACKOFF_SECONDS_FIRST = 0.02
_BACKOFF_SECONDS_MAX = 2.0
_CALL_SECONDS_MAX = 60.0
"""How long an answer may take, beyond the time that a poll is asked to wait."""

_WORKED_SECONDS = 1.0
"""A call that took so long had a server that was at work."""

_CLOSE_SECONDS_MAX = 1.0
"""How long closing waits until items that nobody will have are given back."""


class Sharer(Protocol):
    """Who sends over a core, and what is asked of it when the client closes, in this order."""

    def close(self) -> None:
        """Begin nothing more, but give back items that nobody will have. May be called twice."""

    @property
    def is_giving_back(self) -> bool:
        """Whether that is under way."""

    def end(self) -> None:
        """Fail what was not sent."""


class Core(ABC):
    def __init__(self, address: str, *, retry_seconds: float) -> None:
        """`retry_seconds` is how long a call that nothing came of is tried again."""
        self.address = address
        self.retry_seconds = retry_seconds
        self._link: Link | None = None
        self.server = ServerInfo("", "", 0, 0, 0, 0)
        """What the server said of itself when it was last reached."""
        self._tasks: set[asyncio.Task[Any]] = set()
        self.sharers: list[Sharer] = []
        self.tokens = count(1)
        """Names for polls, each used once."""

    # --- any thread -------------------------------------------------------------------------------

    @abstractmethod
    def post(self, function: Callable[[], object]) -> None:
        """Run a function on the core's loop. What is posted together is run in one turn."""

    @abstractmethod
    def new_future(self) -> "Future[Any]":
        """A future that the face can wait for. An asyncio one has the same methods."""

    def submit(self, make: Callable[[], Coroutine[Any, Any, T]]) -> "Future[T]":
        """Run a coroutine on the core's loop; cancelling the future cancels it."""
        future: Future[T] = self.new_future()
        self.post(lambda: self.start(make(), future))
        return future

    # --- the core's loop --------------------------------------------------------------------------

    async def open(self, connect_seconds: float) -> None:
        """Connect, or raise `Unavailable` after `connect_seconds`."""
        self._loop: asyncio.AbstractEventLoop = asyncio.get_running_loop()
        self._connecting = asyncio.Lock()
        await self.get_link(self._loop.time() + connect_seconds)

    async def shut(self) -> None:
        """Give back what nobody will have, fail what is not answered yet, end the connection."""
        self.close_sharers()
        try:
            await self._wait_given_back()
        finally:
            for sharer in self.sharers:
                sharer.end()
            for task in list(self._tasks):
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            if self._link is not None:
                self._link.close()
                self._link = None

    def close_sharers(self) -> None:
        for sharer in self.sharers:
            sharer.close()

    async def _wait_given_back(self) -> None:
        """The server would take the end of the connection for the death of who held the items."""
        give_up_at = self._loop.time() + _CLOSE_SECONDS_MAX
        while self._link is not None and any(each.is_giving_back for each in self.sharers):
            await asyncio.sleep(0)  # what was put into lanes leaves in the next turn
            seconds = give_up_at - self._loop.time()
            if seconds <= 0 or not self._tasks:
                return
            await asyncio.wait(self._tasks, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)

    def start(
        self,
        coroutine: Coroutine[Any, Any, T],
        future: "Future[T]",
        unclaimed: Callable[[T], None] = lambda _: None,
        withdraw: Callable[[], object] | None = None,
    ) -> "asyncio.Task[None]":
        """Run a coroutine into a future; `unclaimed` gets a result that nobody waits for.

        When the future is cancelled so is the coroutine, unless there is another way to `withdraw`
        what it does.
        """
        task = self.spawn(self._resolve(coroutine, future, unclaimed))

        def cancel_task(done: "Future[T]") -> None:
            if done.cancelled():
                with contextlib.suppress(RuntimeError):  # the loop is closed already
                    self._loop.call_soon_threadsafe(withdraw or task.cancel)

        def never_began(_: "asyncio.Task[None]") -> None:
            # A task that is cancelled before its first turn runs nothing of its coroutine.
            coroutine.close()
            fail_future(future, Unavailable("the client was closed before the call was sent"))

        task.add_done_callback(never_began)
        future.add_done_callback(cancel_task)
        return task

    def spawn(self, coroutine: Coroutine[Any, Any, T]) -> "asyncio.Task[T]":
        """Run a coroutine beside others; it is cancelled when the client closes."""
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
        work_seconds: float = 0.0,
        is_wanted: Callable[[], bool] = lambda: True,
    ) -> Any:
        """Send a call and return its answer.

        A call that was refused for now is sent again, and so is one whose connection was lost if it
        `is_repeatable`; else its outcome is unknown, and `OutcomeUnknown` says so. One that is not
        wanted any more is not sent again.

        `wait_seconds` is how long the call asks to wait, `work_seconds` what the server may need
        for it: a connection that is lost after some of that is made anew for as long as any other.
        """
        backoff = self.new_backoff(wait_seconds)
        last_try_at = backoff.give_up_at + work_seconds
        while True:
            link = await self.get_link(backoff.give_up_at)
            sent_at = self._loop.time()
            try:
                return await self.answer(
                    link,
                    send,
                    is_repeatable=is_repeatable,
                    queue=queue,
                    wait_seconds=wait_seconds + work_seconds,
                )
            except QueueberError as error:
                now = self._loop.time()
                if now > sent_at + _WORKED_SECONDS and now < last_try_at:
                    backoff = self.new_backoff(wait_seconds)
                if not error.retryable or not is_wanted() or not await backoff.pause():
                    raise

    def new_backoff(self, wait_seconds: float = 0.0) -> "Backoff":
        return Backoff(self._loop.time() + self.retry_seconds + wait_seconds)

    async def answer(
        self,
        link: Link,
        send: Callable[[Link], Awaitable[Any]],
        *,
        is_repeatable: bool,
        queue: str | None = None,
        wait_seconds: float = 0.0,
    ) -> Any:
        """Send a call once: its answer, or what became of it as an error."""
        try:
            async with asyncio.timeout(_CALL_SECONDS_MAX + wait_seconds):
                return await send(link)
        except TimeoutError:
            raise self._lost(link, "no answer came in time", is_repeatable) from None
        except asyncio.CancelledError:
            if is_repeatable:
                raise
            raise _unknown("the client was closed", self.address) from None
        except capnp.KjException as failure:
            if failure.type == "DISCONNECTED":
                raise self._lost(link, "the connection was lost", is_repeatable) from None
            if queue is not None:
                # Its capability may be the broken one; asking again costs no round trip.
                link.forget_queue(queue)
            raise from_wire(failure.description) from None

    def _lost(self, link: Link, what: str, is_repeatable: bool) -> QueueberError:
        if self._link is link:
            self._link = None
        link.close()
        if is_repeatable:
            return Unavailable(f"{what} at {self.address}")
        return _unknown(what, self.address)

    async def get_link(self, give_up_at: float) -> Link:
        """The connection; made anew if it was lost."""
        if self._link is not None:
            return self._link
        backoff = Backoff(give_up_at)
        while True:
            try:
                async with asyncio.timeout_at(max(give_up_at, self._loop.time() + 1)):
                    async with self._connecting:
                        if self._link is None:
                            link = await open_link(self.address)
                            self._link, self.server = link, link.server
                            self.spawn(self._watch(link))
                        return self._link
            except TimeoutError:
                raise Unavailable(f"the server at {self.address} does not answer") from None
            except Unavailable:
                if not await backoff.pause():
                    raise

    async def _watch(self, link: Link) -> None:
        """Notice a connection that ends while nothing is sent, so that no call is lost in it."""
        await link.wait_lost()
        if self._link is link:
            self._link = None

    async def _resolve(
        self,
        coroutine: Coroutine[Any, Any, T],
        future: "Future[T]",
        unclaimed: Callable[[T], None],
    ) -> None:
        try:
            result = await coroutine
        except asyncio.CancelledError:
            fail_future(future, Unavailable("the client was closed while the call was under way"))
            raise
        except Exception as error:  # noqa: BLE001  whatever it is belongs to the caller
            fail_future(future, error)
        else:
            try:
                future.set_result(result)
            except FUTURE_IS_DONE:
                unclaimed(result)


class Backoff:
    """Pauses that grow, each cut by chance so that many clients do not come back at once."""

    def __init__(self, give_up_at: float) -> None:
        self.give_up_at = give_up_at
        self._seconds = _BACKOFF_SECONDS_FIRST

    async def pause(self) -> bool:
        """Pause; False, and at once, when no time is left."""
        seconds = self._seconds * uniform(0.5, 1.0)
        if asyncio.get_running_loop().time() + seconds >= self.give_up_at:
            return False
        await asyncio.sleep(seconds)
        self._seconds = min(2 * self._seconds, _BACKOFF_SECONDS_MAX)
        return True


def _unknown(what: str, address: str) -> OutcomeUnknown:
    return OutcomeUnknown(
        f"{what} while the call to {address} was under way: it may or may not have taken effect"
    )
