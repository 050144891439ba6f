"""The sources of topics as users write them, turned into values of the model.

Filters are parsed here as well as in the server: a wrong one is refused before any call.
"""

from enum import StrEnum
from typing import Literal, TypeVar

from queueber.client.arguments.values import to_name
from queueber.errors import InvalidArgument
from queueber.filters import parse_fields, parse_filter
from queueber.model import EventPayload, On, Source

AnyOn = On | Literal["insert", "update", "delete"]
AnyPayload = EventPayload | Literal["key", "full", "diff"]

Word = TypeVar("Word", bound=StrEnum)


def to_source(
    queue: object, on: object, where: object, partition_by: object, payload: object
) -> Source:
    source = Source(
        to_name(queue),
        to_on(on),
        _to_text("where", where),
        _to_text("partition_by", partition_by),
        _to_word("payload", EventPayload, payload),
    )
    if source.where:
        parse_filter(source.where)
    if source.partition_by:
        parse_fields(source.partition_by)
    return source


def to_on(on: object) -> On:
    return _to_word("on", On, on)


def _to_word(field: str, words: type[Word], given: object) -> Word:
    word = given.lower() if isinstance(given, str) else ""
    if word not in list(words):
        raise InvalidArgument(f"{field}: {given!r} is none of {', '.join(words)}")
    return words(word)


def _to_text(field: str, given: object) -> str:
    if not isinstance(given, str):
        raise InvalidArgument(f"{field}: {type(given).__name__} is not a str")
    return given
