"""`/live`: what a page of the dashboard shows, as server-sent events."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Annotated, Literal

import msgspec
from msgspec import Meta
from starlette.responses import StreamingResponse

from queueber.client import AsyncClient
from queueber.gateway.bodies import encode
from queueber.gateway.bounds import Bound
from queueber.gateway.calls import Call
from queueber.gateway.dashboard import subjects
from queueber.gateway.dashboard.feeds import Feed, Feeds, Look
from queueber.gateway.problems import invalid
from queueber.gateway.routes import Route
from queueber.limits import QUEUE_NAME_CHARS_MAX, TOPIC_NAME_BYTES_MAX

VIEWERS_MAX = 200
"""Pages that one process of the gateway feeds."""
_HEARTBEAT_SECONDS = 15.0
"""Proxies close connections on which nothing happens."""


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


def _live_of(call: "Call[LiveQuery, None]") -> _Live:
    found = call.state.setdefault("live", _Live())
    assert isinstance(found, _Live)
    return found


async def show_live(call: Call[LiveQuery, None]) -> StreamingResponse:
    live, looks = _live_of(call), _looks(call.client, call.query)
    live.viewers.take()
    events = _events(call, live, looks)
    try:
        # The first answer of the server decides whether this is a stream or an error.
        first = await anext(events)
    except BaseException:
        live.viewers.give_back()
        raise
    return StreamingResponse(_sent(live, first, events), media_type="text/event-stream")


def _looks(client: AsyncClient, query: LiveQuery) -> dict[tuple[str, ...], Look]:
    """By the event's name and what else tells one feed from another."""
    looks: dict[tuple[str, ...], Look] = {("server",): subjects.server(client)}
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


async def _sent(live: _Live, first: bytes, events: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    try:
        yield first
        async for event in events:
            yield event
    finally:
        await events.aclose()  # type: ignore[attr-defined]  # it is a generator
        live.viewers.give_back()


async def _events(
    call: "Call[LiveQuery, None]", live: _Live, looks: dict[tuple[str, ...], Look]
) -> AsyncIterator[bytes]:
    viewer, ended = asyncio.Event(), asyncio.get_running_loop().create_future()
    with contextlib.ExitStack() as stack:
        stack.enter_context(call.bounds.waiting(ended))
        feeds = {
            key: stack.enter_context(live.feeds.viewed((id(call.client), *key), look, viewer))
            for key, look in looks.items()
        }
        seen = dict.fromkeys(feeds, 0)
        while not ended.done():
            viewer.clear()
            event = b"".join([_news(key, feed, seen) for key, feed in feeds.items()])
            if event:
                yield event
            if not await _woken(viewer, ended):
                yield b": still here\n\n"


def _news(key: tuple[str, ...], feed: Feed, seen: dict[tuple[str, ...], int]) -> bytes:
    version = seen[key]
    if feed.version == version:
        return b""
    if feed.problem is not None:
        if not any(seen.values()):
            raise feed.problem
        seen[key] = feed.version
        return _event("problem", feed.problem.body(), subject=key[0])
    change = feed.since(version)
    seen[key] = feed.version
    return b"" if change is None else _event(key[0], encode(change))


def _event(name: str, data: bytes, subject: str = "") -> bytes:
    told = b'{"subject":%b,"problem":%b}' % (encode(subject), data) if subject else data
    return b"event: %b\ndata: %b\n\n" % (name.encode(), told)


async def _woken(viewer: asyncio.Event, ended: "asyncio.Future[None]") -> bool:
    """Wait until there is something new, or the gateway stops; False after a while without."""
    waiting = asyncio.ensure_future(viewer.wait())
    try:
        done, _ = await asyncio.wait(
            (waiting, ended), timeout=_HEARTBEAT_SECONDS, return_when=asyncio.FIRST_COMPLETED
        )
    finally:
        waiting.cancel()
    return bool(done)


ROUTES = (
    Route(
        "GET", "/live", show_live, "What the dashboard shows, as server-sent events", "dashboard",
        query=LiveQuery, answer_type="text/event-stream", is_shown=False,
    ),
)  # fmt: skip
