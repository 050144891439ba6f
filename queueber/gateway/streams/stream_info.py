"""A stream as its topic shows it, and the answer to HEAD."""

from typing import Any

from queueber.client import AsyncClient
from queueber.errors import NotFound
from queueber.gateway.calls import Call
from queueber.gateway.origins import Headers
from queueber.gateway.problems import Problem
from queueber.gateway.routes import PlainAnswer
from queueber.gateway.streams import answers
from queueber.gateway.streams.content import DEFAULT_TYPE
from queueber.gateway.streams.headers import EPOCH, ONE_MS, TIME_MS_MAX
from queueber.gateway.streams.paths import no_stream, stream_path
from queueber.gateway.streams.tokens import gone
from queueber.limits import SECOND_MS
from queueber.model import TopicInfo


async def described(client: AsyncClient, path: str) -> TopicInfo:
    """The topic of a stream; raises a `Problem` if there is none. That is no use of it."""
    try:
        info = await client.describe_topic(path)
    except NotFound:
        raise no_stream(path) from None
    if info.is_deleted:
        raise gone(f"stream: {path} is deleted, and kept only for its forks")
    if len(info.partitions) != 1:
        raise no_single_partition(path)
    return info


def no_single_partition(path: str) -> Problem:
    detail = f"stream: {path} is a topic of several partitions; a stream has one"
    return Problem(409, "FAILED_PRECONDITION", detail)


def tail_of(info: TopicInfo) -> int:
    return info.partitions[0].next_offset


def type_of(info: TopicInfo) -> str:
    return info.config.content_type or DEFAULT_TYPE


def tail_headers(info: TopicInfo) -> Headers:
    """Where a stream goes on, and whether it does."""
    headers: Headers = [answers.next_offset(info.origin, tail_of(info))]
    return [*headers, answers.CLOSED] if info.is_closed else headers


async def show(call: Call[Any, Any]) -> PlainAnswer:
    info = await described(call.client, stream_path(call.names))
    settings = info.config.settings
    headers = [(b"content-type", type_of(info).encode()), *tail_headers(info)]
    if settings.ttl_ms:
        headers.append((b"stream-ttl", b"%d" % (settings.ttl_ms // SECOND_MS)))
    if settings.expires_at_ms:
        headers.append((b"stream-expires-at", _time(settings.expires_at_ms)))
    return answers.done(200, headers)


def _time(at_ms: int) -> bytes:
    at = EPOCH + min(at_ms, TIME_MS_MAX) * ONE_MS
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z").encode()
