"""Messages as a client reads them: whole columns, of which a value is made when it is asked for.

A server packs messages of one partition in pieces, each of messages that were published together.
Here nothing is done for a piece beyond its head, because a topic of single publishes has as many
pieces as messages.
"""

from collections.abc import Iterator, Sequence
from struct import Struct, unpack_from
from typing import Any, NamedTuple

from queueber.ids import ItemId, shifted
from queueber.model import PackedContents, PackedMessages
from queueber.schema import wire

_PIECE = Struct(">IQQ16sQ")
_FIELDS = wire.MessageColumns.schema.fields
_PAYLOADS, _KEYS, _ATTRIBUTES = (_FIELDS[name] for name in ("payloads", "keys", "attributes"))


class Piece(NamedTuple):
    """Messages that were published together: what their offsets, ids and sequences follow."""

    count: int  # type: ignore[assignment]  # nobody counts the fields of the tuple
    offset: int
    at_ms: int
    id: bytes
    sequence: int


class Columns:
    """The messages of one answer."""

    __slots__ = ("attributes", "count", "keys", "partition", "payloads", "pieces")

    def __init__(self, partition: int, source: Any) -> None:
        has = source._has_by_field
        self.partition = partition
        self.pieces = list(map(Piece._make, _PIECE.iter_unpack(source.pieces)))
        self.count = sum([piece.count for piece in self.pieces])
        self.payloads: Sequence[bytes] = (
            _packed(source.payloads) if has(_PAYLOADS) else [b""] * self.count
        )
        self.keys = _packed(source.keys) if has(_KEYS) else None
        self.attributes = _packed(source.attributes) if has(_ATTRIBUTES) else None

    def part(self, start: int, stop: int) -> "Columns":
        """Some of the messages, which share the buffers of these."""
        part = Columns.__new__(Columns)
        part.partition = self.partition
        part.pieces = list(_cut(self.pieces, start, stop))
        part.count = stop - start
        part.payloads = self.payloads[start:stop]
        part.keys = self.keys and self.keys[start:stop]
        part.attributes = self.attributes and self.attributes[start:stop]
        return part

    def packed(self) -> list[PackedMessages]:
        """The pieces, each with its payloads as one run of bytes."""
        payloads = self.payloads
        if not isinstance(payloads, PackedContents):
            payloads = PackedContents.pack(payloads)
        at, pieces = 0, list[PackedMessages]()
        for piece in self.pieces:
            end = at + piece.count
            own = payloads[at:end]
            pieces.append(
                PackedMessages(
                    piece.offset,
                    piece.count,
                    piece.at_ms,
                    piece.id,
                    piece.sequence,
                    own.ends_from_zero,
                    bytes(own.values),
                    list(self.keys[at:end]) if self.keys else (),
                    list(self.attributes[at:end]) if self.attributes else (),
                )
            )
            at = end
        return pieces

    @property
    def next_offset(self) -> int:
        """The offset after the last of the messages, of which there must be some."""
        last = self.pieces[-1]
        return last.offset + last.count

    def key(self, at: int) -> str:
        return self.keys[at].decode() if self.keys else ""

    def attributes_of(self, at: int) -> dict[str, str]:
        return read_attributes(self.attributes[at]) if self.attributes else {}


def _cut(pieces: Sequence[Piece], start: int, stop: int) -> Iterator[Piece]:
    """The pieces of the messages between two places."""
    at = 0
    for piece in pieces:
        first, end = max(start, at), min(stop, at + piece.count)
        if first < end:
            moved = first - at
            yield Piece(
                end - first,
                piece.offset + moved,
                piece.at_ms,
                shifted(ItemId(piece.id), moved),
                piece.sequence + moved,
            )
        at += piece.count


def read_attributes(packed: bytes) -> dict[str, str]:
    """Names and values in turn, with 2 bytes of length before each."""
    texts: list[str] = []
    at = 0
    while at < len(packed):
        (size,) = unpack_from(">H", packed, at)
        texts.append(packed[at + 2 : at + 2 + size].decode())
        at += 2 + size
    return dict(zip(texts[::2], texts[1::2], strict=True))


def _packed(source: Any) -> PackedContents:
    return PackedContents(source.values, memoryview(source.ends).cast("I"))
