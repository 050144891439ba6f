"""`/live`: what a page of the dashboard shows, as server-sent events."""

import asyncio
import contextlib
from typing import Annotated, Literal

import msgspec
from msgspec import Meta
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from queueber.client import AsyncClient
from queueber.gateway.bodies import encode
from queueber.gateway.bounds import Bound
from queueber.gateway.calls import Call
from queueber.gateway.dashboard import subjects
from queueber.gateway.dashboard.feeds import Feed, Feeds, Look
from queueber.gateway.problems import Problem, invalid
from queueber.gateway.routes import Route
from queueber.limits import QUEUE_NAME_CHARS_MAX, TOPIC_NAME_BYTES_MAX

VIEWERS_MAX = 200
"""Pages that one process of the gateway feeds."""
_HEARTBEAT_SECONDS = 15.0
"""Proxies close connections on which nothing happens."""
_HEARTBEAT = b": still here\n\n"


class LiveQuery(msgspec.Struct, forbid_unknown_fields=True):
    view: Literal["overview", "queue", "topic"] = "overview"
    queue: Annotated[str, Meta(max_length=QUEUE_NAME_CHARS_MAX)] = ""
    topic: Annotated[str, Meta(max_length=TOPIC_NAME_BYTES_MAX)] = ""
    topics_prefix: Annotated[str, Meta(max_length=TOPIC_NAME_BYTES_MAX)] = ""
    topics_after: Annotated[str, Meta(max_length=TOPIC_NAME_BYTES_MAX)] = ""


class _Live:
    """The feeds and viewers of one process."""

    def __init__(self) -> None:
        self.feeds = Feeds()
        self.viewers = Bound("pages are looked at", VIEWERS_MAX)


Subject = tuple[str, ...]
"""The name of its events, and what else tells one from another."""
_SERVER: Subject = ("server",)


class _Viewer:
    """One page that is looked at: its feeds, and how much of each it has seen."""

    def __init__(self, live: _Live, client: AsyncClient, looks: dict[Subject, Look]) -> None:
        self._woken = asyncio.Event()
        self._stack = contextlib.ExitStack()
        self._stack.enter_context(live.viewers.taken())
        self._feeds = {
            subject: self._stack.enter_context(
                live.feeds.viewed((id(client), *subject), look, self._woken)
            )
            for subject, look in looks.items()
        }
        self._seen = dict.fromkeys(self._feeds, 0)

    async def next(self) -> bytes:
        """What is new, once something is; a comment if nothing is for a while."""
        give_up_at = asyncio.get_running_loop().time() + _HEARTBEAT_SECONDS
        try:
            async with asyncio.timeout_at(give_up_at):
                while True:
                    await self._woken.wait()
                    self._woken.clear()
                    if self._feeds[_SERVER].version == 0:
                        continue  # how the server is comes first
                    news = b"".join([self._news(each, feed) for each, feed in self._feeds.items()])
                    if news:
                        return news
        except TimeoutError:
            return _HEARTBEAT

    def _news(self, subject: Subject, feed: Feed) -> bytes:
        version = self._seen[subject]
        if feed.version == version:
            return b""
        if feed.problem is not None:
            if subject == _SERVER and version == 0:
                raise feed.problem  # the page is not opened
            self._seen[subject] = feed.version
            return _event("problem", encode(_Trouble(subject[0], msgspec.Raw(feed.problem.body()))))
        change = feed.since(version)
        self._seen[subject] = feed.version
        return b"" if change is None else _event(subject[0], encode(change))

    def close(self) -> None:
        self._stack.close()


class _Trouble(msgspec.Struct):
    """What could not be looked at, and why."""

    subject: str
    problem: msgspec.Raw


def _event(name: str, data: bytes) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (name.encode(), data)


class _LiveStream(Response):
    """Events as long as the page is open. Whoever reads slowly gets fewer of them."""

    def __init__(self, call: Call[LiveQuery, None], viewer: _Viewer, first: bytes) -> None:
        super().__init__(media_type="text/event-stream")
        self._call = call
        self._viewer = viewer
        self._first = first

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = [pair for pair in self.raw_headers if pair[0] != b"content-length"]
        try:
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            if scope["method"] != "HEAD":
                # A gateway that stops ends the stream; the page comes back.
                with contextlib.suppress(Problem):
                    await self._call.wait(self._run(send))
            await send({"type": "http.response.body", "body": b""})
        finally:
            self._viewer.close()

    async def _run(self, send: Send) -> None:
        event = self._first
        while True:
            await send({"type": "http.response.body", "body": event, "more_body": True})
            event = await self._viewer.next()


async def show_live(call: Call[LiveQuery, None]) -> Response:
    live = call.state.setdefault("live", _Live())
    assert isinstance(live, _Live)
    viewer = _Viewer(live, call.client, _looks(call.client, call.query))
    try:
        # The first answer of the server decides whether this is a stream or an error.
        return _LiveStream(call, viewer, await call.wait(viewer.next()))
    except BaseException:
        viewer.close()
        raise


def _looks(client: AsyncClient, query: LiveQuery) -> dict[Subject, Look]:
    looks: dict[Subject, Look] = {_SERVER: subjects.server(client)}
    match query.view:
        case "queue":
            if not query.queue:
                raise invalid("query: queue: name the queue")
            looks["queue", query.queue] = subjects.queue(client, query.queue)
        case "topic":
            if not query.topic:
                raise invalid("query: topic: name the topic")
            looks["topic", query.topic] = subjects.topic(client, query.topic)
        case _:
            prefix, after = query.topics_prefix, query.topics_after
            looks["queues",] = subjects.queues(client)
            looks["topics", prefix, after] = subjects.topics(client, prefix, after)
    return looks


ROUTES = (
    Route(
        "GET", "/live", show_live, "What the dashboard shows, as server-sent events", "dashboard",
        query=LiveQuery, answer_type="text/event-stream", is_shown=False,
    ),
)  # fmt: skip
