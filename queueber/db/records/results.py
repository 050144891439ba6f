"""A row of a queue's results: id, attempt, the lengths of key, batch and attributes, then those
three and the result. Attributes are packed as in the item's record."""

import struct
from typing import NamedTuple

from queueber.ids import ItemId
from queueber.limits import ID_BYTES

_ROW = struct.Struct(f">{ID_BYTES}s H H H H")
_SIZES = struct.Struct(">HH")
_SIZES_AT = ID_BYTES + 2
PLAIN_RESULT = _ROW.pack(bytes(ID_BYTES), 1, 0, 0, 0)[ID_BYTES:]
"""The bytes between id and result of a plain item: first attempt, no key, batch or attributes."""


class ResultRow(NamedTuple):
    item_id: ItemId
    attempt: int
    key: bytes
    batch: bytes
    attributes: bytes
    result: bytes


def encode_result(
    item_id: bytes, result: bytes, *, attempt: int, key: bytes, batch: bytes, attributes: bytes
) -> bytes:
    head = _ROW.pack(item_id, attempt, len(key), len(batch), len(attributes))
    return b"".join((head, key, batch, attributes, result))


def decode_result(row: bytes) -> ResultRow:
    item_id, attempt, key_size, batch_size, attributes_size = _ROW.unpack_from(row)
    key_end = _ROW.size + key_size
    batch_end = key_end + batch_size
    end = batch_end + attributes_size
    return ResultRow(
        item_id,
        attempt,
        row[_ROW.size : key_end],
        row[key_end:batch_end],
        row[batch_end:end],
        row[end:],
    )


def is_of_batch(row: bytes, batch: bytes) -> bool:
    """Whether a row belongs to the batch. It is not decoded: most rows may belong to others."""
    key_size, batch_size = _SIZES.unpack_from(row, _SIZES_AT)
    start = _ROW.size + key_size
    return row[start : start + batch_size] == batch
