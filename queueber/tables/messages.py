"""The table of a topic's messages, and pages of them as its rows."""

from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import chain, repeat
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from queueber.ids import ItemId, ids_up_to, shifted
from queueber.model import Column, PackedContents
from queueber.tables.pages import TEXT_MAP, TIME

MESSAGES = pa.schema(
    {
        "partition": pa.int32(),
        "offset": pa.int64(),
        "id": pa.string(),
        "timestamp": TIME,
        "key": pa.string(),
        "attributes": TEXT_MAP,
        "payload": pa.binary(),
        "sequence": pa.int64(),
    }
)

_SENT_ON_DEMAND = {
    "payload": Column.CONTENTS,
    "key": Column.KEYS,
    "attributes": Column.ATTRIBUTES,
}


class _Piece(Protocol):
    """Messages that were published together: what their offsets, ids and sequences follow."""

    @property
    def count(self) -> int: ...
    @property
    def offset(self) -> int: ...
    @property
    def at_ms(self) -> int: ...
    @property
    def id(self) -> bytes: ...
    @property
    def sequence(self) -> int: ...


class MessageColumns(Protocol):
    """Messages of one partition, as the client has them."""

    @property
    def partition(self) -> int: ...
    @property
    def count(self) -> int: ...
    @property
    def pieces(self) -> Sequence[_Piece]: ...
    @property
    def payloads(self) -> Sequence[bytes]: ...
    @property
    def keys(self) -> PackedContents | None: ...

    def attributes_of(self, at: int) -> dict[str, str]: ...


def unwanted_columns(names: Collection[str]) -> list[Column]:
    """The columns that the server need not send if only these columns of the table are read."""
    return [column for name, column in _SENT_ON_DEMAND.items() if name not in names]


def messages_page(page: MessageColumns, names: Sequence[str]) -> pa.RecordBatch:
    """Messages as rows. `names` lists the columns in order; no other column is built."""
    make: dict[str, Callable[[], pa.Array]] = {
        "partition": lambda: pa.repeat(pa.scalar(page.partition, pa.int32()), page.count),
        "offset": lambda: _numbers(page, lambda piece: piece.offset),
        "id": lambda: pa.array(_ids(page), pa.string()),
        "timestamp": lambda: _times(page),
        "key": lambda: _keys(page),
        "attributes": lambda: _attributes(page),
        "payload": lambda: _packed(page.payloads, pa.binary()),
        "sequence": lambda: _numbers(page, lambda piece: piece.sequence),
    }
    return pa.RecordBatch.from_arrays([make[name]() for name in names], names=list(names))


def _numbers(page: MessageColumns, first: Callable[[_Piece], int]) -> pa.Array:
    ranges = [range(first(piece), first(piece) + piece.count) for piece in page.pieces]
    return pa.array(list(chain.from_iterable(ranges)), pa.int64())


def _ids(page: MessageColumns) -> Iterator[str]:
    for piece in page.pieces:
        last = shifted(ItemId(piece.id), piece.count - 1)
        yield from [each.hex() for each in ids_up_to(last, piece.count)]


def _times(page: MessageColumns) -> pa.Array:
    micros = [repeat(piece.at_ms * 1000, piece.count) for piece in page.pieces]
    return pa.array(list(chain.from_iterable(micros)), pa.int64()).cast(TIME)


def _keys(page: MessageColumns) -> pa.Array:
    """A message without a key has null."""
    if page.keys is None:
        return pa.nulls(page.count, pa.string())
    keys = _packed(page.keys, pa.string())
    return pc.if_else(pc.equal(pc.binary_length(keys), 0), pa.scalar(None, pa.string()), keys)


def _attributes(page: MessageColumns) -> pa.Array:
    maps = [list(page.attributes_of(at).items()) for at in range(page.count)]
    return pa.array(maps, TEXT_MAP)


def _packed(column: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """The values as Arrow has them, in the buffer in which they came."""
    if not isinstance(column, PackedContents):
        return pa.array(column, kind)
    offsets = bytes(4) + column.ends_from_zero
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(column.values)]
    return pa.Array.from_buffers(kind, len(column), buffers)
