"""Codecs of the schemas of topics."""

from typing import Any

from queueber.model import TopicSchema
from queueber.wire.lists import Codec

_SCHEMA = Codec(TopicSchema, without=("document",))
ANY = -1
"""In place of what is expected."""


def write_topic_schema(target: Any, schema: TopicSchema) -> None:
    _SCHEMA.write(target, schema)
    target.document = schema.document


def read_topic_schema(source: Any) -> TopicSchema:
    return _SCHEMA.read(source, document=bytes(source.document))


def read_expected(number: int) -> int | None:
    return None if number < 0 else number


def write_expected(number: int | None) -> int:
    return ANY if number is None else number
