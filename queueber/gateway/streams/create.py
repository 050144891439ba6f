"""PUT: create a stream, or say that it is there already as wanted."""

import contextlib
from dataclasses import dataclass
from typing import Any

from queueber.errors import AlreadyExists
from queueber.gateway.calls import Call
from queueber.gateway.problems import Problem
from queueber.gateway.routes import PlainAnswer
from queueber.gateway.streams import answers, headers
from queueber.gateway.streams.appended import tell_appended
from queueber.gateway.streams.content import DEFAULT_TYPE, to_messages
from queueber.gateway.streams.extensions.keeping import Keeping, check_new_path, keeping_of
from queueber.gateway.streams.extensions.schemas.rules import Keyed
from queueber.gateway.streams.forks import ForkPoint, find_fork_point
from queueber.gateway.streams.headers import Expiry
from queueber.gateway.streams.paths import ROOT, stream_path
from queueber.gateway.streams.stream_info import described, tail_headers, type_of
from queueber.limits import SECOND_MS
from queueber.model import Published, TopicInfo, bare_type

_AT_ONCE_MS = 1
"""What a TTL of 0 seconds is to the server, to which 0 means that a topic stays."""


@dataclass(slots=True)
class _Wanted:
    """What the stream is to be."""

    path: str
    content_type: str
    ttl_ms: int
    expires_at_ms: int
    closes: bool
    fork: ForkPoint | None
    keeping: Keeping

    def settings(self) -> dict[str, Any]:
        """As the client takes them."""
        found = self.keeping.arguments()
        if self.ttl_ms:
            found["ttl"] = self.ttl_ms / SECOND_MS
        if self.expires_at_ms:
            found["expires_at"] = self.expires_at_ms / SECOND_MS
        return found

    def is_met_by(self, info: TopicInfo) -> bool:
        settings = info.config.settings
        return (
            bare_type(self.content_type) == bare_type(type_of(info))
            and self.ttl_ms == settings.ttl_ms
            and self.expires_at_ms == settings.expires_at_ms
            and self.closes == info.is_closed
            and self._is_same_fork(info)
        )

    @property
    def begins_at(self) -> int:
        """The offset of its own first message, behind what is left of a cut one."""
        return 0 if self.fork is None else self.fork.offset + bool(self.fork.cut_bytes)

    def _is_same_fork(self, info: TopicInfo) -> bool:
        if self.fork is None:
            return not info.parent
        if self.fork.source != info.parent:
            return False
        place = (self.fork.offset, self.fork.cut_bytes)
        return not self.fork.is_given or place == (info.fork_offset, info.cut_bytes)


async def create(call: Call[Any, Any]) -> PlainAnswer:
    path = stream_path(call.names)
    check_new_path(path)
    expiry, asked = headers.expiry_of(call.headers), headers.fork_of(call.headers)
    given_type = headers.content_type(call.headers)
    closes = headers.closes(call.headers)
    keeping = keeping_of(call.headers, given_type, is_fork=asked is not None)
    if asked is None:
        kind = keeping.content_type or DEFAULT_TYPE
        wanted = _Wanted(path, kind, *_times(expiry), closes, None, keeping)
    else:
        source = await _source(call, asked.source)
        kind = given_type or type_of(source)
        if bare_type(kind) != bare_type(type_of(source)):
            raise _conflict(
                f"content-type: it is {kind}, and that of {asked.source} is {type_of(source)}"
            )
        times = _times(expiry) if expiry != Expiry() else _inherited(source)
        fork = await find_fork_point(call.client, source, asked)
        wanted = _Wanted(path, kind, *times, closes, fork, keeping)
    headers.check_encoding(call.headers)
    messages = await keeping.apply(to_messages(kind, call.raw or b""))
    made = await _make(call, wanted, messages)
    if isinstance(made, Published):
        return _created(call, wanted, made)
    if made:
        return await _forked(call, wanted, len(messages))
    return await _compared(call, wanted)


async def _make(call: Call[Any, Any], wanted: _Wanted, messages: Keyed) -> Published | bool:
    """How it begins, or True: it is new. One that exists is looked at afterwards."""
    made: dict[str, Any] = {"messages": messages, "close": wanted.closes}
    try:
        if wanted.fork is None:
            created = await call.client.create_topic(
                wanted.path,
                content_type=wanted.content_type,
                schema=wanted.keeping.profile.first_schema(),
                **wanted.settings(),
                **made,
            )
            return False if created is None else created
        source = call.client.topic(wanted.fork.source, must_exist=True)
        return await source.fork(
            wanted.path,
            wanted.fork.offset,
            cut_bytes=wanted.fork.cut_bytes,
            **wanted.settings(),
            **made,
        )
    except AlreadyExists:
        return False


def _created(call: Call[Any, Any], wanted: _Wanted, begins: Published) -> PlainAnswer:
    shown = [
        (b"content-type", wanted.content_type.encode()),
        answers.next_offset(begins.origin, begins.end_offset),
        (b"location", _address(call, wanted.path)),
    ]
    if begins.is_closed:
        shown.append(answers.CLOSED)
    if begins.offsets:
        tell_appended(call, wanted.path, begins.end_offset)
    return answers.done(201, shown)


async def _forked(call: Call[Any, Any], wanted: _Wanted, messages: int) -> PlainAnswer:
    """The answer about a new fork, as it began: others may have appended to it since, or its time
    is over already."""
    origin, kind = 0, wanted.content_type
    with contextlib.suppress(Problem):
        info = await described(call.client, wanted.path)
        origin, kind = info.origin, type_of(info)
    end = wanted.begins_at + messages
    if messages:
        tell_appended(call, wanted.path, end)
    shown = [
        (b"content-type", kind.encode()),
        answers.next_offset(origin, end),
        (b"location", _address(call, wanted.path)),
    ]
    return answers.done(201, [*shown, answers.CLOSED] if wanted.closes else shown)


async def _compared(call: Call[Any, Any], wanted: _Wanted) -> PlainAnswer:
    """The answer about a stream that exists, if it is as asked for."""
    try:
        info = await described(call.client, wanted.path)
    except Problem as problem:
        if problem.status != 410:
            raise
        raise _conflict(f"{problem.detail}; choose another path") from None
    if not (wanted.is_met_by(info) and await wanted.keeping.is_met_by(call.client, info)):
        raise _conflict(f"stream: {wanted.path} exists, and is not what is asked for here")
    return answers.done(200, [(b"content-type", type_of(info).encode()), *tail_headers(info)])


def _address(call: Call[Any, Any], path: str) -> bytes:
    host = call.headers.get(b"host") or b"localhost"
    return f"{call.scope['scheme']}://".encode() + host + (ROOT + path).encode()


def _times(expiry: Expiry) -> tuple[int, int]:
    ttl_ms = 0
    if expiry.ttl_seconds is not None:
        ttl_ms = expiry.ttl_seconds * SECOND_MS or _AT_ONCE_MS
    return ttl_ms, expiry.at_ms or 0


def _inherited(source: TopicInfo) -> tuple[int, int]:
    settings = source.config.settings
    return settings.ttl_ms, settings.expires_at_ms


async def _source(call: Call[Any, Any], path: str) -> TopicInfo:
    try:
        return await described(call.client, path)
    except Problem as problem:
        if problem.status != 410:
            raise
        raise _conflict(f"stream-forked-from: {path} is deleted") from None


def _conflict(detail: str) -> Problem:
    return Problem(409, "ALREADY_EXISTS", detail)
