"""What users publish, checked and turned into what the call sends."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, TypedDict

from queueber.client.arguments.new_items import to_mapping
from queueber.client.arguments.topic_names import to_topic_name
from queueber.client.arguments.traces import with_trace
from queueber.client.arguments.values import to_number, to_text
from queueber.errors import InvalidArgument
from queueber.limits import (
    CONTENT_TYPE_BYTES_MAX,
    DEDUP_ID_BYTES_MAX,
    KEY_BYTES_MAX,
    PRODUCER_ID_BYTES_MAX,
    PUBLISH_MESSAGES_MAX,
    SCHEMA_VERSION_MAX,
    TEXT_SEQUENCE_BYTES_MAX,
    TOPIC_PARTITIONS_MAX,
)
from queueber.model import NewMessages, Producer, Publication


@dataclass(slots=True)
class NewMessage:
    """A message to publish."""

    payload: bytes
    key: str = ""
    """Messages of one key go to one partition. "": none."""
    attributes: Mapping[str, str] = field(default_factory=dict)
    dedup_id: str = ""
    """A second message with this id is not published within the topic's dedup window."""


class MessageLike(Protocol):
    """A `NewMessage`, or a `Message` that was read: what has a payload, a key and attributes."""

    @property
    def payload(self) -> bytes: ...

    @property
    def key(self) -> str: ...

    @property
    def attributes(self) -> Mapping[str, str]: ...


AnyMessage = bytes | tuple[bytes, str] | MessageLike
"""A payload, a payload and its key, or a `NewMessage`."""
AnyMessages = AnyMessage | Iterable[AnyMessage]
AnyProducer = Producer | tuple[str, int, int]
"""The id of a producer, its epoch, and the number of the call, from 1 on."""


class NumberedOptions(TypedDict, total=False):
    """The options of a publish of a `TopicProducer`."""

    partition: int | None
    expected_offset: int | None
    close: bool
    content_type: str
    text_sequence: str
    schema_version: int
    topic_number: int
    number_decides: bool
    one_partition: bool


class PublishOptions(NumberedOptions, total=False):
    """The options of a publish; see `Topic.publish`."""

    producer: AnyProducer | None


def to_publication(
    topic: str,
    messages: AnyMessages,
    *,
    partition: int | None = None,
    producer: AnyProducer | None = None,
    expected_offset: int | None = None,
    close: bool = False,
    content_type: str = "",
    text_sequence: str = "",
    schema_version: int = 0,
    topic_number: int = 0,
    number_decides: bool = False,
    one_partition: bool = False,
) -> Publication:
    to_topic_name(topic)
    listed = to_new_messages(messages)
    to_switch("close", close)
    if not listed.payloads and not close:
        raise InvalidArgument("messages: there are none; publish at least one, or close=True")
    listed.attributes = with_trace(listed.attributes, len(listed.payloads))
    if expected_offset is not None:
        to_number("expected_offset", expected_offset, what="an offset")
    return Publication(
        topic,
        listed,
        None if partition is None else to_partition(partition),
        None if producer is None else to_producer(producer),
        expected_offset,
        close,
        content_type=content_type and to_text("content_type", content_type, CONTENT_TYPE_BYTES_MAX),
        text_sequence=text_sequence
        and to_text("text_sequence", text_sequence, TEXT_SEQUENCE_BYTES_MAX),
        number_decides=to_switch("number_decides", number_decides),
        schema_version=to_number("schema_version", schema_version, limit=SCHEMA_VERSION_MAX),
        topic_number=to_number("topic_number", topic_number),
        one_partition=to_switch("one_partition", one_partition),
    )


def to_first(
    topic: str, messages: AnyMessages, *, close: bool, schema_version: int
) -> Publication | None:
    """What a new topic begins with; None: with nothing."""
    listed = to_new_messages(messages)
    if not listed.payloads and not to_switch("close", close):
        return None
    first = to_publication(topic, (), close=True, schema_version=schema_version)
    listed.attributes = with_trace(listed.attributes, len(listed.payloads))
    first.messages, first.closes = listed, close
    return first


def to_switch(name: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise InvalidArgument(f"{name}: {value!r} is neither True nor False")
    return value


def to_partition(partition: object) -> int:
    return to_number("partition", partition, limit=TOPIC_PARTITIONS_MAX - 1)


def to_producer(producer: object) -> Producer:
    if isinstance(producer, tuple) and len(producer) == 3:
        producer = Producer(*producer)
    if not isinstance(producer, Producer):
        raise InvalidArgument(
            f"producer: {producer!r} is not a producer; give its id, epoch and the number of the "
            "call, such as ('importer', 1, 1)"
        )
    to_text("producer", producer.id, PRODUCER_ID_BYTES_MAX, is_needed=True)
    to_number("producer.epoch", producer.epoch)
    to_number("producer.sequence", producer.sequence, least=1)
    return producer


def to_new_messages(messages: object) -> NewMessages:
    if isinstance(messages, bytes | bytearray | memoryview):
        return NewMessages([bytes(messages)])
    if isinstance(messages, str):
        raise InvalidArgument("messages: str is text; encode it to bytes first")
    if hasattr(messages, "payload"):
        messages = [messages]
    if isinstance(messages, tuple) and len(messages) == 2 and isinstance(messages[1], str):
        messages = [messages]
    if not isinstance(messages, Iterable):
        raise InvalidArgument(f"messages: {messages!r} is neither bytes nor a list of messages")
    listed: list[Any] = list(messages)
    if len(listed) > PUBLISH_MESSAGES_MAX:
        raise InvalidArgument(
            f"messages: there are {len(listed)}; the limit is {PUBLISH_MESSAGES_MAX}, publish in "
            "several calls"
        )
    if set(map(type, listed)) <= {bytes}:
        return NewMessages(listed)
    rows = [_to_row(at, each) for at, each in enumerate(listed)]
    payloads, keys, attributes, dedup_ids = map(list, zip(*rows, strict=True))
    return NewMessages(
        payloads,
        keys if any(keys) else (),
        attributes if any(attributes) else (),
        dedup_ids if any(dedup_ids) else (),
    )


def _to_row(at: int, message: Any) -> tuple[bytes, str, Mapping[str, str], str]:
    key: object = ""
    attributes: object = {}
    dedup_id: object = ""
    payload = message
    if isinstance(message, tuple):
        if len(message) != 2:
            raise InvalidArgument(
                f"messages: message {at} is a tuple of {len(message)}; give (payload, key)"
            )
        payload, key = message
    elif not isinstance(message, bytes | bytearray | memoryview) and hasattr(message, "payload"):
        payload = message.payload
        key = getattr(message, "key", "")
        attributes = getattr(message, "attributes", {})
        dedup_id = getattr(message, "dedup_id", "")
    if not isinstance(payload, bytes | bytearray | memoryview):
        raise InvalidArgument(
            f"messages: message {at} is {type(payload).__name__}; it must be bytes, "
            "(bytes, key), or have a payload"
        )
    return (
        bytes(payload),
        to_text("key", "" if key is None else key, KEY_BYTES_MAX),
        to_mapping(attributes) if attributes else {},
        to_text("dedup_id", "" if dedup_id is None else dedup_id, DEDUP_ID_BYTES_MAX),
    )
