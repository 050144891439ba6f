"""The details of a stream: what it is, what it holds and where, and what holds on to it."""

import hashlib
from typing import Any

import msgspec

from queueber.gateway.bodies import encode
from queueber.gateway.calls import Call
from queueber.gateway.routes import Answer, NoQuery
from queueber.gateway.streams.caching import is_known
from queueber.gateway.streams.extensions.schemas.documents import GENERIC, document_in_force
from queueber.gateway.streams.paths import stream_path
from queueber.gateway.streams.stream_info import described, type_of
from queueber.gateway.streams.tokens import token
from queueber.model import TopicInfo


class Place(msgspec.Struct):
    """An offset, as readers pass it and as a number."""

    token: str
    offset: int


class OwnMessages(msgspec.Struct):
    messages: int
    """Offsets that the stream itself has given and still keeps; those of messages that later ones
    replaced count, too."""
    bytes: int
    oldest_ms: int | None
    last_ms: int | None


class InheritedMessages(msgspec.Struct):
    """What a fork shares with its ancestors, without a copy."""

    messages: int
    bytes: int
    """An append that the fork shares in part counts whole."""


class ForkedFrom(msgspec.Struct):
    path: str
    offset: Place
    cut_bytes: int
    """So many bytes of the message at that offset are the first of the fork."""


class Retention(msgspec.Struct):
    """0: no limit."""

    seconds: float
    bytes: int
    messages: int
    compaction: str | None
    """`key`: only the last message of each key is kept."""


class StreamDetails(msgspec.Struct):
    path: str
    content_type: str
    created_at_ms: int
    closed: bool
    origin: int
    """The same for a stream and its forks; another one once it is deleted and created again."""
    number: int
    first: Place
    """The oldest that is kept."""
    next: Place
    own: OwnMessages
    inherited: InheritedMessages
    forked_from: ForkedFrom | None
    forks: int
    ttl_seconds: float | None
    expires_at_ms: int | None
    """When it is deleted, as things stand."""
    retention: Retention
    profile: str
    schema_version: int
    """0: it has no schema."""
    groups: list[str]


async def show_details(call: Call[NoQuery, None]) -> Answer:
    info = await described(call.client, stream_path(call.names))
    _, document = await document_in_force(call.client, info)
    details = shown_details(info, GENERIC if document is None else document.profile)
    tag = f'"{hashlib.blake2b(encode(details), digest_size=8).hexdigest()}"'
    headers = {"etag": tag, "cache-control": "no-cache"}
    if is_known(call.headers, tag.encode()):
        return Answer(None, 304, headers)
    return Answer(details, 200, headers)


def shown_details(info: TopicInfo, profile: str) -> StreamDetails:
    settings, log = info.config.settings, info.partitions[0]
    own_first = max(log.first_offset, info.fork_offset) if info.parent else log.first_offset
    return StreamDetails(
        path=info.name,
        content_type=type_of(info),
        created_at_ms=info.created_at_ms,
        closed=info.is_closed,
        origin=info.origin,
        number=info.number,
        first=place(info.origin, log.first_offset),
        next=place(info.origin, log.next_offset),
        own=OwnMessages(
            log.next_offset - own_first, log.bytes, log.oldest_ms or None, log.last_ms or None
        ),
        inherited=InheritedMessages(own_first - log.first_offset, log.inherited_bytes),
        forked_from=_forked_from(info),
        forks=info.forks,
        ttl_seconds=settings.ttl_ms / 1000 if settings.ttl_ms else None,
        expires_at_ms=info.expires_at_ms or None,
        retention=Retention(
            settings.retention_ms / 1000,
            settings.retention_bytes,
            settings.retention_messages,
            "key" if settings.keeps_last_per_key else None,
        ),
        profile=profile,
        schema_version=settings.schema_version,
        groups=list(info.groups),
    )


def place(origin: int, offset: int) -> Place:
    return Place(token(origin, offset).decode(), offset)


def _forked_from(info: TopicInfo) -> ForkedFrom | None:
    if not info.parent:
        return None
    return ForkedFrom(info.parent, place(info.origin, info.fork_offset), info.cut_bytes)


EXAMPLE: dict[str, Any] = {
    "path": "orders",
    "content_type": "application/json",
    "created_at_ms": 1730000000000,
    "closed": False,
    "origin": 7,
    "number": 7,
    "first": {"token": "0000000000000007_0000000000000000", "offset": 0},
    "next": {"token": "0000000000000007_0000000000000002", "offset": 2},
    "own": {"messages": 2, "bytes": 40, "oldest_ms": 1730000000000, "last_ms": 1730000000000},
    "inherited": {"messages": 0, "bytes": 0},
    "forked_from": None,
    "forks": 0,
    "ttl_seconds": None,
    "expires_at_ms": None,
    "retention": {"seconds": 0, "bytes": 0, "messages": 0, "compaction": None},
    "profile": "generic",
    "schema_version": 0,
    "groups": [],
}
