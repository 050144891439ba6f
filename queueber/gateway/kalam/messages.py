"""Messages as clients of KalamDB read them.

Its clients take `message_id` for another name of `key`, and `ts` for one of `timestamp_ms`, and
refuse a message that has both. So the newer paths have the one, and those of its first design the
other. What a message is about is in the attributes that routes give it.
"""

import msgspec

from queueber.client import Message

_OP = "queueber.op"
_QUEUE = "queueber.queue"
_PAYLOAD = "queueber.payload"
_USER = "queueber.user"
_NOBODY = "anonymous"
"""Whose message it is if nobody said so: clients need a name there."""


class TopicMessage(msgspec.Struct):
    """A message, as KalamDB's clients read it."""

    topic_id: str
    partition_id: int
    offset: int
    payload: bytes
    key: str | None
    timestamp_ms: int
    user: str
    op: str
    source_table: str
    payload_mode: str


class DesignedMessage(msgspec.Struct):
    """A message, as the first design of KalamDB's topics has it."""

    topic_id: str
    partition_id: int
    offset: int
    message_id: str
    source_table: str
    op: str
    ts: int
    payload_mode: str
    payload: bytes
    user: str


def topic_message(topic: str, message: Message) -> TopicMessage:
    attributes = message.attributes
    return TopicMessage(
        topic,
        message.partition,
        message.offset,
        message.payload,
        message.key or None,
        message.timestamp_ms,
        attributes.get(_USER) or _NOBODY,
        attributes.get(_OP, "insert").capitalize(),
        attributes.get(_QUEUE, ""),
        attributes.get(_PAYLOAD, "full").capitalize(),
    )


def designed_message(topic: str, message: Message) -> DesignedMessage:
    made = topic_message(topic, message)
    return DesignedMessage(
        topic,
        made.partition_id,
        made.offset,
        message.id.hex(),
        made.source_table,
        made.op,
        made.timestamp_ms,
        made.payload_mode,
        made.payload,
        made.user,
    )
