"""The answer of a tail: server-sent events, as long as the caller reads them."""

import asyncio
from collections.abc import Sequence
from typing import Any

import msgspec
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from queueber.client import AsyncTopic
from queueber.errors import QueueberError
from queueber.gateway.bounds import Bound
from queueber.gateway.calls import Call
from queueber.gateway.problems import Problem, problem_of
from queueber.gateway.topics.messages import shown_message
from queueber.gateway.topics.tails.followed import Followed
from queueber.limits import READ_ITEMS_MAX, SECOND_MS

EVENTS_TYPE = "text/event-stream"
_BEGIN = b"retry: 1000\n\n"
"""A caller that lost the connection comes back after a second."""
_HEARTBEAT = b": heartbeat\n\n"
_WAIT_SECONDS = 3600.0
"""How long a call waits at a partition. The client divides it into shorter ones."""


class EventStream(Response):
    """Reads a page, sends it, and reads the next only then: a caller that reads slowly costs one
    page. It is disconnected when all tails have too much unsent, or it does not read at all."""

    def __init__(
        self,
        call: Call[Any, Any],
        topic: AsyncTopic,
        followed: Sequence[Followed],
        unsent: Bound,
        messages_max: int | None,
        heartbeat_ms: int,
    ) -> None:
        super().__init__(media_type=EVENTS_TYPE)
        del self.headers["content-length"]
        self._has_begun = False
        self._call = call
        self._topic = topic
        self._followed = followed
        self._unsent = unsent
        self._messages_left = messages_max
        self._heartbeat = heartbeat_ms / SECOND_MS

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] == "HEAD":
            await self._begin(send)
        else:
            try:
                await self._call.wait(self._run(send))
            except Problem:
                if not self._has_begun:
                    raise
                # The gateway stops, or is too busy: the stream ends, and the caller comes back.
        await send({"type": "http.response.body", "body": b""})

    async def _begin(self, send: Send) -> None:
        self._has_begun = True
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})

    async def _run(self, send: Send) -> None:
        await self._begin(send)
        await self._send(send, _BEGIN)
        try:
            if len(self._followed) == 1:
                await self._follow_one(send, self._followed[0])
            else:
                await self._follow_many(send)
        except QueueberError as error:
            body = problem_of(error).body()
            await self._send(send, b"event: problem\ndata: " + body + b"\n\n")
            return
        if all(each.is_over for each in self._followed):
            await self._send(send, b"event: closed\ndata: {}\n\n")

    # --- partitions -------------------------------------------------------------------------------

    async def _follow_one(self, send: Send, only: Followed) -> None:
        while self._messages_left != 0 and not only.is_over:
            if not await self._pass_on(send, only, self._heartbeat):
                await self._send(send, _HEARTBEAT)

    async def _follow_many(self, send: Send) -> None:
        """A small call waits at each partition; pages are read one after the other."""
        waits: dict[asyncio.Task[bool], Followed] = {}
        try:
            for each in self._followed:
                self._wait(waits, each)
            while waits and self._messages_left != 0:
                done, _ = await asyncio.wait(
                    waits, timeout=self._heartbeat, return_when=asyncio.FIRST_COMPLETED
                )
                if not done:
                    await self._send(send, _HEARTBEAT)
                for task in done:
                    each = waits.pop(task)
                    if task.result() and self._messages_left != 0:
                        await self._pass_on(send, each, 0)
                    self._wait(waits, each)
        finally:
            for task in waits:
                task.cancel()
            await asyncio.gather(*waits, return_exceptions=True)

    def _wait(self, waits: dict["asyncio.Task[bool]", Followed], each: Followed) -> None:
        if not each.is_over:
            waits[asyncio.ensure_future(each.wait(self._topic, _WAIT_SECONDS))] = each

    # --- events -----------------------------------------------------------------------------------

    async def _pass_on(self, send: Send, each: Followed, seconds: float) -> bool:
        """Send the next page of a partition; False if no message came."""
        limit = min(self._messages_left or READ_ITEMS_MAX, READ_ITEMS_MAX)
        page = await each.read(self._topic, limit, seconds)
        events = []
        if each.missed:
            told = msgspec.json.encode({"partition": each.partition, "missed": each.missed})
            events.append(b"event: missed\ndata: " + told + b"\n\n")
            each.missed = 0
        others = b"".join(
            b",%d:%d" % (other.partition, other.offset - 1)
            for other in self._followed
            if other is not each
        )
        for message in page:
            data = msgspec.json.encode(shown_message(message))
            events.append(
                b"id: %d:%d%s\ndata: %s\n\n" % (each.partition, message.offset, others, data)
            )
        if self._messages_left is not None:
            self._messages_left -= len(page)
        if events:
            await self._send(send, b"".join(events))
        return bool(events)

    async def _send(self, send: Send, body: bytes) -> None:
        with self._unsent.taken(len(body)):
            await send({"type": "http.response.body", "body": body, "more_body": True})
