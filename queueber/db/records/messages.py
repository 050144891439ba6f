"""Blocks of messages: the body of a block of a topic's log.

    first id (16) | first sequence (8) | contents, keys and attributes as in `blocks.py`

Messages that were published together have consecutive ids and sequences, as they have consecutive
offsets. Position n of the block is the message at its first offset + n. In a topic that keeps the
last message of each key the block may have lost some of them.
"""

import struct

from queueber.db.records.blocks import Block
from queueber.db.records.log import decode_log_block
from queueber.limits import ID_BYTES

_HEAD = struct.Struct(f">{ID_BYTES}sQ")
_MESSAGES_AT = 24 + _HEAD.size
"""Where the contents begin in the value of a block, behind the head that every log has."""


def encode_messages(first_id: bytes, first_sequence: int, contents: bytes) -> bytes:
    """The body of a block; `contents` is that of `blocks.py`."""
    return _HEAD.pack(first_id, first_sequence) + contents


class MessageBlock:
    """A block of messages as it is stored."""

    __slots__ = ("appended_at_ms", "block", "end_offset", "first_id", "first_offset", "sequence")

    def __init__(self, key: bytes, value: bytes) -> None:
        """Raises `ValueError` if the value is no block of messages, or not the one of that key."""
        head = decode_log_block(key, value)
        self.first_offset = head.first_offset
        self.end_offset = head.end_offset
        self.appended_at_ms = head.appended_at_ms
        self.first_id, self.sequence = read_message_head(value)
        self.block = contents_of(value)
        if self.block.span != head.end_offset - head.first_offset:
            raise ValueError(
                f"a block of {self.block.span} messages has offsets from {head.first_offset} to "
                f"{head.end_offset}"
            )


def read_message_head(value: bytes) -> tuple[bytes, int]:
    """The id and the sequence of the first message of a block."""
    if len(value) < _MESSAGES_AT:
        raise ValueError(f"a block of messages has only {len(value)} bytes")
    return _HEAD.unpack_from(value, _MESSAGES_AT - _HEAD.size)


def contents_of(value: bytes) -> Block:
    """Payloads, keys and attributes of a block, given its whole value."""
    return Block(value[_MESSAGES_AT:])


def with_contents(value: bytes, contents: bytes) -> bytes:
    """The value of a block whose contents are replaced."""
    return value[:_MESSAGES_AT] + contents
