"""Schemas of topics. The head of a version is apart from its document: a list reads few bytes."""

import struct

from queueber.db.records.keys import PREFIX_BYTES
from queueber.model.topics import TopicSchema

SCHEMA_KEY_BYTES = 5
_HEADS = b"\0"
_DOCUMENTS = b"\1"
_HEAD = struct.Struct(">QQ")


def schema_key(topic_prefix: bytes, version: int) -> bytes:
    """Where the head of a version is."""
    return topic_prefix + _HEADS + version.to_bytes(4)


def document_key(topic_prefix: bytes, version: int) -> bytes:
    return topic_prefix + _DOCUMENTS + version.to_bytes(4)


def heads_range(topic_prefix: bytes) -> tuple[bytes, bytes]:
    """The keys of all heads of a topic."""
    return topic_prefix + _HEADS, topic_prefix + _DOCUMENTS


def is_head_key(key: bytes) -> bool:
    return key[PREFIX_BYTES : PREFIX_BYTES + 1] == _HEADS


def split_schema_key(key: bytes) -> int:
    """The version of the key of a head or document."""
    return int.from_bytes(key[PREFIX_BYTES + 1 :])


def encode_schema_head(schema: TopicSchema) -> bytes:
    return _HEAD.pack(schema.from_offset, schema.at_ms)


def decode_schema_head(version: int, value: bytes) -> TopicSchema:
    """A version without its document. Raises `struct.error` if the value has another size."""
    return TopicSchema(version, *_HEAD.unpack(value))
