"""Messages as they are published and read: in JSON, or as raw bytes with headers."""

from collections.abc import Mapping
from typing import Annotated
from urllib.parse import parse_qsl, quote, unquote, urlencode

import msgspec
from msgspec import Meta
from starlette.responses import Response

from queueber.client import Message, NewMessage
from queueber.gateway.bodies import RAW_TYPE
from queueber.gateway.problems import invalid
from queueber.gateway.queues.fields import Id
from queueber.gateway.queues.items import ProducerRef
from queueber.gateway.topics import fields
from queueber.model import Producer, Published

# --- to publish -----------------------------------------------------------------------------------


class MessageToPublish(msgspec.Struct, forbid_unknown_fields=True):
    payload: fields.Payload
    key: fields.Key | None = None
    attributes: fields.Attributes = msgspec.field(default_factory=dict)
    dedup_id: fields.DedupId | None = None


class MessageHeaders(msgspec.Struct, forbid_unknown_fields=True):
    """Headers that go with raw bytes, each beginning with `Queueber-`. Text is percent-encoded."""

    key: str | None = None
    attributes: Annotated[str, Meta(description="As in a form: `name=value&other=value`.")] = ""
    dedup_id: str | None = None
    partition: fields.Partition | None = None
    producer: Annotated[str | None, Meta(description="The producer's id.")] = None
    epoch: fields.Count | None = None
    sequence: fields.Some | None = None
    expected_offset: fields.Offset | None = None
    close: bool = False


def new_messages(messages: list[MessageToPublish]) -> list[NewMessage]:
    return [
        NewMessage(each.payload, each.key or "", each.attributes, each.dedup_id or "")
        for each in messages
    ]


def producer_of(given: ProducerRef | None) -> Producer | None:
    return None if given is None else Producer(given.id, given.epoch, given.sequence)


def message_of(headers: MessageHeaders, payload: bytes) -> MessageToPublish:
    """The message that raw bytes and their headers are."""
    return MessageToPublish(
        payload,
        to_text("key", headers.key),
        _to_attributes(headers.attributes),
        to_text("dedup-id", headers.dedup_id),
    )


def producer_of_headers(headers: MessageHeaders) -> ProducerRef | None:
    if headers.producer is None:
        if headers.epoch is not None or headers.sequence is not None:
            raise invalid("headers: producer: it is missing; epoch and sequence are a producer's")
        return None
    if headers.sequence is None:
        raise invalid("headers: sequence: it is missing; the calls of a producer are numbered")
    return ProducerRef(
        to_text("producer", headers.producer) or "", headers.epoch or 0, headers.sequence
    )


def to_text(name: str, encoded: str | None) -> str | None:
    try:
        return None if encoded is None else unquote(encoded, errors="strict")
    except UnicodeDecodeError:
        raise invalid(f"headers: {name}: it is not UTF-8, percent-encoded") from None


def _to_attributes(encoded: str) -> dict[str, str]:
    if not encoded:
        return {}
    try:
        pairs = parse_qsl(encoded, keep_blank_values=True, strict_parsing=True, errors="strict")
    except ValueError:
        raise invalid("headers: attributes: write name=value&other=value, as in a form") from None
    if len(dict(pairs)) != len(pairs):
        raise invalid("headers: attributes: a name is given twice")
    return dict(pairs)


# --- published ------------------------------------------------------------------------------------


class PublishAnswer(msgspec.Struct):
    """Where the messages are, in the order in which they were given."""

    published_at_ms: int
    partitions: list[int]
    offsets: list[int]
    ids: list[Id]
    sequences: list[int]
    duplicates: list[bool]
    """For each message, whether its dedup id was there already. Empty when there was none."""
    is_repeat: bool
    """Whether this call of the producer had been published before."""


def shown_published(published: Published) -> PublishAnswer:
    return PublishAnswer(
        published.at_ms,
        list(published.partitions),
        list(published.offsets),
        [each.hex() for each in published.ids],
        list(published.sequences),
        list(published.duplicates),
        published.is_repeat,
    )


# --- read -----------------------------------------------------------------------------------------


class MessageRead(msgspec.Struct):
    partition: int
    offset: int
    payload: fields.Payload
    key: str | None
    attributes: dict[str, str]
    id: Id
    sequence: int
    published_at_ms: int


def shown_message(message: Message) -> MessageRead:
    return MessageRead(
        message.partition,
        message.offset,
        message.payload,
        message.key or None,
        dict(message.attributes),
        message.id.hex(),
        message.sequence,
        message.timestamp_ms,
    )


def raw_message(payload: bytes, told: Mapping[str, object], texts: Mapping[str, str]) -> Response:
    """The payload as it was published; what else is known of the message is in headers."""
    headers = {f"queueber-{name}": str(value) for name, value in told.items()}
    headers |= {f"queueber-{name}": text for name, text in texts.items() if text}
    return Response(payload, media_type=RAW_TYPE, headers=headers)


def encoded_texts(key: str, attributes: Mapping[str, str]) -> dict[str, str]:
    return {"key": quote(key, safe=""), "attributes": urlencode(attributes)}
