"""Calls that are one call to the server: handed on when they come, answered when it answers.

No task waits in between, which would cost a tenth of a call.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import Any, Generic, NamedTuple, TypeVar, cast

from google.protobuf.message import Message

from queueber.client import AsyncClient
from queueber.errors import QueueberError
from queueber.gateway.clients import PooledClient
from queueber.gateway.grpc.calls import Calls, caller_of, failed_with, first_of, parsed
from queueber.gateway.grpc.http2.call import Call
from queueber.gateway.grpc.http2.shared import Handling
from queueber.gateway.grpc.statuses import Status
from queueber.gateway.problems import Problem

Request = TypeVar("Request", bound=Message)
Answer = TypeVar("Answer")


class _UnderWay(NamedTuple):
    call: Call
    used: PooledClient
    begun: float


class HandedOn(Generic[Request, Answer]):
    """The handler of one method."""

    def __init__(
        self,
        calls: Calls,
        name: str,
        kind: type[Request],
        begin: Callable[[AsyncClient, Request], "Future[Answer]"],
        response_of: Callable[[Answer], Message],
    ) -> None:
        self._calls = calls
        self._name = name
        self._kind = kind
        self._begin = begin
        self._response_of = response_of
        self._loop = asyncio.get_running_loop()
        self._with_task = calls.unary(name, kind, self._wait)

    async def _wait(self, client: AsyncClient, request: Request) -> Message:
        return self._response_of(await asyncio.wrap_future(self._begin(client, request)))

    def __call__(self, call: Call) -> Handling:
        requests = self._calls.bounds.requests
        used = None if requests.used >= requests.limit else self._connected(call)
        if used is None:
            return self._with_task(call)  # which waits, or says why not
        requests.take()
        of = _UnderWay(call, used, self._loop.time())
        try:
            request = parsed(self._kind, first_of(call))
            answer = self._begin(cast("AsyncClient", used.client), request)
        except Exception as error:  # noqa: BLE001  its call ends, and no other
            self._end(of, error)
            return None
        answer.add_done_callback(partial(self._answer, of))
        return cast("asyncio.Future[Any]", answer)

    def _connected(self, call: Call) -> PooledClient | None:
        try:
            return self._calls.pool.use_connected(caller_of(call))
        except (QueueberError, Problem):
            return None

    def _answer(self, of: _UnderWay, answer: "Future[Answer]") -> None:
        try:
            raw = self._response_of(answer.result()).SerializeToString()
            if not of.call.answer_now(raw):
                of.call.task = self._loop.create_task(self._answer_slowly(of, raw))
                return
        except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001  as above
            self._end(of, error)
        else:
            self._end(of)

    async def _answer_slowly(self, of: _UnderWay, raw: bytes) -> None:
        """As fast as its caller reads."""
        try:
            await of.call.answer(raw)
        except BaseException as error:
            self._end(of, error)
            raise
        self._end(of)

    def _end(self, of: _UnderWay, error: BaseException | None = None) -> None:
        calls, name = self._calls, self._name
        calls.bounds.requests.give_back()
        calls.pool.leave(of.used, was_refused=isinstance(error, QueueberError | Problem))
        status, text = (Status.OK, "") if error is None else failed_with(error, name)
        calls.measures.observe(name, status, self._loop.time() - of.begun)
        of.call.finish(status, text)
