"""Codecs of the sources of topics."""

from enum import StrEnum
from typing import Any, TypeVar

from queueber.errors import InvalidArgument
from queueber.model import EventPayload, On, Source

_ONS = tuple(On)
_PAYLOADS = tuple(EventPayload)
"""Both in the order of their numbers in the schema."""

ANY_CHANGE = 255

Word = TypeVar("Word", bound=StrEnum)


def write_source(target: Any, source: Source) -> None:
    target.queue = source.queue
    target.on = _ONS.index(source.on)
    target.where = source.where
    target.partitionBy = source.partition_by
    target.payload = _PAYLOADS.index(source.payload)


def read_source(source: Any) -> Source:
    return Source(
        source.queue,
        _word("on", _ONS, source.on),
        source.where,
        source.partitionBy,
        _word("payload", _PAYLOADS, source.payload),
    )


def write_on(on: On | None) -> int:
    return ANY_CHANGE if on is None else _ONS.index(on)


def read_on(number: int) -> On | None:
    return None if number == ANY_CHANGE else _word("on", _ONS, number)


def _word(field: str, words: tuple[Word, ...], number: int) -> Word:
    if number >= len(words):
        raise InvalidArgument(
            f"{field}: {number} is none of {', '.join(words)}; the highest is {len(words) - 1}"
        )
    return words[number]
