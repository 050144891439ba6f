"""GET: what is in a stream from an offset on; live readers wait for what comes next."""

from typing import Any, Literal
from urllib.parse import parse_qsl

import msgspec
from msgspec import UNSET, UnsetType
from starlette.responses import Response

from queueber.gateway.calls import Call
from queueber.gateway.origins import Headers
from queueber.gateway.problems import invalid
from queueber.gateway.routes import PlainAnswer
from queueber.gateway.sending import check_present
from queueber.gateway.streams import answers, caching
from queueber.gateway.streams.caching import NO_CACHE, NO_STORE
from queueber.gateway.streams.found import ANSWER_BYTES, EVENT_BYTES, Found
from queueber.gateway.streams.found import read as read_stream
from queueber.gateway.streams.live.event_stream import EventStream
from queueber.gateway.streams.live.hub import hub_of
from queueber.gateway.streams.paths import stream_path
from queueber.gateway.streams.stream_info import no_single_partition
from queueber.gateway.streams.tokens import START, Place, to_place
from queueber.limits import SECOND_MS

LONG_POLL, SSE = "long-poll", "sse"
_QUERY_FIELDS_MAX = 50


class StreamQuery(msgspec.Struct):
    """The parameters, as OpenAPI shows them; `Query` reads them."""

    offset: str = START
    """Where to begin: what an answer told as `Stream-Next-Offset`, `-1` or `now`."""
    live: Literal["long-poll", "sse"] | UnsetType = UNSET
    """Wait for what comes: once, or as server-sent events."""
    cursor: str | UnsetType = UNSET
    """What the answer before told as `Stream-Cursor`."""


class Query:
    """The parameters that count; others are for caches and programs on the way."""

    __slots__ = ("cursor", "live", "place")

    def __init__(self, query_string: bytes) -> None:
        given = _parameters(query_string)
        offsets = given.get("offset", [])
        if len(offsets) > 1:
            raise invalid("offset: it is given twice")
        self.live = given.get("live", [""])[-1]
        if self.live not in ("", LONG_POLL, SSE):
            raise invalid(f"live: {self.live[:50]!r} is neither {LONG_POLL} nor {SSE}")
        if self.live and not offsets:
            raise invalid(f"offset: a live read needs one; {START} is the start of the stream")
        self.place: Place = to_place(offsets[0] if offsets else START)
        self.cursor = caching.to_cursor(given.get("cursor", [None])[-1])


def _parameters(query_string: bytes) -> dict[str, list[Any]]:
    try:
        pairs = parse_qsl(
            query_string.decode("ascii"), keep_blank_values=True, max_num_fields=_QUERY_FIELDS_MAX
        )
    except ValueError as error:
        raise invalid(f"query: it cannot be read: {error}") from None
    found: dict[str, list[Any]] = {}
    for name, value in pairs:
        found.setdefault(name, []).append(value)
    return found


async def read(call: Call[Any, Any]) -> PlainAnswer | Response:
    path = stream_path(call.names)
    query = Query(call.scope["query_string"])
    call.bounds.unread.make_room()
    topic = call.client.topic(path, must_exist=True)
    bytes_max = EVENT_BYTES if query.live == SSE else ANSWER_BYTES
    async with call.bounds.reads:
        check_present(call.scope)  # it may have waited for its turn
        found = await read_stream(topic, query.place, bytes_max=bytes_max)
    if not found.origin:
        raise no_single_partition(path)
    query.place.check_origin(found.origin)
    if query.live == SSE:
        return EventStream(call, topic, path, found, query.cursor)
    if query.live == LONG_POLL:
        if not found.count and not found.is_closed and found.is_up_to_date:
            waiting = hub_of(call).next(
                call.client, topic, path, found, call.settings.stream_wait_ms / SECOND_MS
            )
            came = await call.wait(waiting, counts=False)
            found = found if came is None else came
        if not found.count:
            return _nothing_came(found, query)
    elif query.place.is_now:
        return _tail(found)
    return _answer(call, query, found)


def _nothing_came(found: Found, query: Query) -> PlainAnswer:
    headers: Headers = [
        answers.next_offset(found.origin, found.next_offset),
        answers.UP_TO_DATE,
        (b"stream-cursor", b"%d" % caching.next_cursor(query.cursor)),
    ]
    return answers.done(204, [*headers, answers.CLOSED] if found.is_closed else headers)


def _tail(found: Found) -> PlainAnswer:
    return PlainAnswer(200, [*_headers(found), (b"cache-control", NO_STORE)], found.body)


def _headers(found: Found) -> Headers:
    headers = [
        answers.NOSNIFF,
        answers.SANDBOX,
        (b"content-type", found.content_type.encode()),
        (b"stream-next-offset", found.token),
        answers.content_length(found.body),
    ]
    if found.is_up_to_date:
        headers.append(answers.UP_TO_DATE)
    if found.is_closed:
        headers.append(answers.CLOSED)
    return headers


def _answer(call: Call[Any, Any], query: Query, found: Found) -> PlainAnswer:
    tag = caching.entity_tag(
        found.number,
        found.start,
        found.next_offset,
        is_closed=found.is_closed,
        is_up_to_date=found.is_up_to_date,
    )
    cached = [(b"etag", tag), (b"cache-control", _age(call, query, found))]
    if query.live:
        cached.append((b"stream-cursor", b"%d" % caching.next_cursor(query.cursor)))
    if caching.is_known(call.headers, tag):
        shown = [answers.NOSNIFF, (b"stream-next-offset", found.token), *cached]
        return PlainAnswer(304, shown)
    return PlainAnswer(200, [*_headers(found), *cached], found.body)


def _age(call: Call[Any, Any], query: Query, found: Found) -> bytes:
    """Bytes behind an offset that names the stream never change; how many there are does, at the
    tail of one that is open. That of a fork names its source, which may have another fork at this
    path some day."""
    if not query.place.origin or found.origin != found.number:
        return NO_CACHE
    if found.is_closed or not found.is_up_to_date:
        return caching.for_good(call.headers, call.settings)
    return caching.for_a_minute(call.headers, call.settings) if query.live else NO_CACHE
