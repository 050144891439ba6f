"""Producers: the last call of each, and the answers to its latest calls."""

import struct
from typing import NamedTuple

from queueber.limits import ID_BYTES


class ProducerHead(NamedTuple):
    epoch: int
    sequence: int
    """The number of its last call."""
    seen_at_ms: int
    forget_at_ms: int


_PRODUCER = struct.Struct(">4Q")


def encode_producer(head: ProducerHead) -> bytes:
    return _PRODUCER.pack(*head)


def decode_producer(value: bytes) -> ProducerHead:
    return ProducerHead(*_PRODUCER.unpack(value))


class Answer(NamedTuple):
    """The answer to a producer's call, and a checksum of the items that it added."""

    checksum: int
    ids: list[bytes]
    duplicates: list[bool]
    """Empty if there was none."""


_ANSWER = struct.Struct(">II")


def encode_answer(answer: Answer) -> bytes:
    head = _ANSWER.pack(len(answer.ids), answer.checksum)
    return head + b"".join(answer.ids) + bytes(answer.duplicates)


def decode_answer(value: bytes) -> Answer:
    """Raises `ValueError` if the value is no answer."""
    if len(value) < _ANSWER.size:
        raise ValueError(f"an answer has {len(value)} bytes, not even {_ANSWER.size}")
    count, checksum = _ANSWER.unpack_from(value)
    start, end = _ANSWER.size, _ANSWER.size + count * ID_BYTES
    if len(value) not in (end, end + count):
        raise ValueError(f"an answer of {len(value)} bytes cannot have {count} ids")
    ids = [value[at : at + ID_BYTES] for at in range(start, end, ID_BYTES)]
    return Answer(checksum, ids, [bool(each) for each in value[end:]])
