"""A stream as server-sent events: what is there, and what comes, for about a minute.

Everything that is read in one turn is one data event and one control event, written together. A
reader that reads slowly holds one turn; it is disconnected when all of them hold too much and it is
among the slowest (`gateway/unread.py`), or when it does not read at all.
"""

import asyncio
import random
from typing import Any

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from queueber.client import AsyncTopic
from queueber.errors import QueueberError
from queueber.gateway.calls import Call
from queueber.gateway.problems import Problem
from queueber.gateway.streams import caching
from queueber.gateway.streams.content import is_text
from queueber.gateway.streams.found import EVENT_BYTES, Found, read
from queueber.gateway.streams.live.hub import hub_of
from queueber.limits import SECOND_MS

EVENTS_TYPE = "text/event-stream"
_CONNECTION_SECONDS = (55.0, 65.0)
"""How long a connection lasts. Readers that came together do not all come back together."""


class EventStream(Response):
    def __init__(
        self,
        call: Call[Any, Any],
        topic: AsyncTopic,
        path: str,
        first: Found,
        cursor: int | None,
    ) -> None:
        super().__init__(headers={"content-type": EVENTS_TYPE, "cache-control": "no-cache"})
        del self.headers["content-length"]
        if not is_text(first.content_type):
            self.headers["stream-sse-data-encoding"] = "base64"
        self._call = call
        self._topic = topic
        self._path = path
        self._found = first
        self._cursor = cursor
        self._has_begun = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await self._call.wait(self._run(send), counts=False)
        except (Problem, QueueberError):
            if not self._has_begun:
                raise
            # The reader comes back, and is told then: with a status.
        await send({"type": "http.response.body", "body": b""})

    async def _run(self, send: Send) -> None:
        loop, found, hub = asyncio.get_running_loop(), self._found, hub_of(self._call)
        ends_at = loop.time() + random.uniform(*_CONNECTION_SECONDS)
        keep_alive = self._call.settings.stream_wait_ms / SECOND_MS
        self._has_begun = True
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        await self._send(send, found.taken_events(self._next_cursor()))
        while not found.is_closed and (left := ends_at - loop.time()) > 0:
            if found.is_up_to_date:
                seconds = min(left, keep_alive)
                came = await hub.next(self._call.client, self._topic, self._path, found, seconds)
                if came is None:
                    await self._send(send, found.control_event(self._next_cursor()))
                    continue
                found = came
                await self._send(send, found.events(self._next_cursor()))
            else:
                async with self._call.bounds.reads:
                    came = await read(self._topic, found.after, bytes_max=EVENT_BYTES)
                found = came.same_stream_as(found)
                await self._send(send, found.taken_events(self._next_cursor()))

    def _next_cursor(self) -> int:
        return caching.next_cursor(self._cursor)

    async def _send(self, send: Send, body: bytes) -> None:
        await send({"type": "http.response.body", "body": body, "more_body": True})
