"""One request, as its handler gets it."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from starlette.types import Receive, Scope

from queueber.client import AsyncClient
from queueber.gateway.bodies import HungUp
from queueber.gateway.bounds import STOPPING, Bounds
from queueber.gateway.problems import too_busy
from queueber.gateway.settings import GatewaySettings

Query = TypeVar("Query")
Body = TypeVar("Body")
T = TypeVar("T")


@dataclass(slots=True)
class Call(Generic[Query, Body]):
    """A request: the names in its path, its query and its body, checked and decoded."""

    scope: Scope
    receive: Receive
    settings: GatewaySettings
    bounds: Bounds
    headers: Mapping[bytes, bytes]
    names: Mapping[str, str]
    query: Query
    body: Body
    raw: bytes | None = None
    """The body as it came, if it is raw bytes; then `body` is the struct of the headers."""
    client_or_none: AsyncClient | None = None
    state: dict[str, object] = field(default_factory=dict)
    """What rooms of the gateway keep as long as it runs."""
    _held_bytes: int = 0
    _has_turn: bool = False

    @property
    def client(self) -> AsyncClient:
        """The client with the caller's credential."""
        assert self.client_or_none is not None, "the route says that it uses no client"
        return self.client_or_none

    @contextlib.contextmanager
    def counting(self, body_bytes: int) -> Iterator[None]:
        """What came in its body counts until it is handled, or waits."""
        self.bounds.bodies.take(body_bytes)
        self._held_bytes = body_bytes
        try:
            yield
        finally:
            self._let_go()
            self.end_turn()

    def _let_go(self) -> None:
        self.bounds.bodies.give_back(self._held_bytes)
        self._held_bytes = 0

    async def take_turn(self) -> None:
        """Wait for the turn of an answer of megabytes, which ends when the answer is encoded.

        Raises a `Problem` if callers have not read too much already.
        """
        self.bounds.unread.make_room()
        await self.bounds.large_answers.acquire()
        self._has_turn = True
        self.bounds.unread.make_room()  # others had theirs meanwhile

    @property
    def has_turn(self) -> bool:
        return self._has_turn

    def end_turn(self) -> None:
        if self._has_turn:
            self._has_turn = False
            self.bounds.large_answers.release()

    async def wait(
        self,
        awaited: Awaitable[T],
        *,
        give_back: Callable[[T], Awaitable[object]] | None = None,
        counts: bool = True,
    ) -> T:
        """Await something that may take long, unless the caller hangs up: then it is cancelled.

        `give_back` gets what came in the same moment. `counts`: whether it is a wait of its own to
        the server, of which there is a limit. Raises `HungUp`.
        """
        waiting = asyncio.ensure_future(awaited)
        self._let_go()  # what waits has said little, however long it was
        with self.bounds.waiting(waiting, counts=counts):
            hang_up = asyncio.ensure_future(self._hang_up())
            try:
                await asyncio.wait((waiting, hang_up), return_when=asyncio.FIRST_COMPLETED)
                if not hang_up.done():
                    if waiting.cancelled():
                        raise too_busy(STOPPING)
                    return waiting.result()
                is_answered = waiting.done() and not waiting.cancelled()
                if give_back is not None and is_answered and not waiting.exception():
                    await give_back(waiting.result())
                raise HungUp
            finally:
                await _cancel(waiting)
                await _cancel(hang_up)

    async def _hang_up(self) -> None:
        while (await self.receive())["type"] != "http.disconnect":
            pass


async def _cancel(task: "asyncio.Future[Any]") -> None:
    if not task.done():
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError, Exception):
            await task
