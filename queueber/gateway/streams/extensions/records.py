"""Records of a stream: each message with its offset, its time and its key."""

import base64
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from queueber.client import Message
from queueber.errors import OutOfRange
from queueber.gateway.calls import Call
from queueber.gateway.streams.content import DEFAULT_TYPE, is_json, is_text
from queueber.gateway.streams.extensions.details import Place, place
from queueber.gateway.streams.found import not_there
from queueber.gateway.streams.paths import stream_path
from queueber.gateway.streams.tokens import START, to_place
from queueber.limits import MIB

_RECORDS_MAX = 1_000
_BYTES_MAX = 2 * MIB


class RecordsQuery(msgspec.Struct, forbid_unknown_fields=True):
    offset: Annotated[str, Meta(max_length=64)] = START
    """Where to begin: an offset of this stream, -1 or now."""
    limit: Annotated[int, Meta(ge=1, le=_RECORDS_MAX)] = 100


class StreamRecord(msgspec.Struct):
    """One message."""

    offset: Place
    next_offset: Place
    """Where a read goes on after it."""
    time_ms: int
    key: str | None
    data: Any
    """A value of JSON, text, or base64, as `encoding` says."""
    encoding: str
    """`json`, `text` or `base64`."""


class RecordPage(msgspec.Struct):
    records: list[StreamRecord]
    next_offset: Place
    """Where the next page begins."""
    up_to_date: bool
    """Whether this was all that there is."""
    closed: bool
    """Whether nothing will come after these."""


async def read_records(call: Call[RecordsQuery, None]) -> RecordPage:
    """Up to `limit` messages, and up to 2 MiB of them; one at least if there is one."""
    query, topic = call.query, call.client.topic(stream_path(call.names), must_exist=True)
    wanted = to_place(query.offset)
    try:
        page = await topic.read(
            0, start=wanted.position, limit=query.limit, bytes=_BYTES_MAX, tells_topic=True
        )
    except OutOfRange as error:
        raise await not_there(topic, wanted, error) from None
    wanted.check_origin(page.origin)
    kind = page.content_type or DEFAULT_TYPE
    return RecordPage(
        [_record(each, page.origin, kind) for each in page],
        place(page.origin, page.next_offset),
        page.is_at_end,
        page.is_at_end and page.is_closed,
    )


def _record(message: Message, origin: int, kind: str) -> StreamRecord:
    data, encoding = _data(message.payload, kind)
    return StreamRecord(
        place(origin, message.offset),
        place(origin, message.offset + 1),
        message.timestamp_ms,
        message.key or None,
        data,
        encoding,
    )


def _data(payload: bytes, kind: str) -> tuple[Any, str]:
    if is_json(kind) and payload:
        return msgspec.Raw(payload), "json"
    if is_text(kind):
        try:
            return payload.decode(), "text"
        except UnicodeDecodeError:
            pass
    return base64.b64encode(payload).decode(), "base64"
