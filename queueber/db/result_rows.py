"""A row of a queue's results: id, attempt, the lengths of key and batch, then those two and the
result."""

import struct

from queueber.limits import ID_BYTES

_ROW = struct.Struct(f">{ID_BYTES}s H H H")
PLAIN_RESULT = _ROW.pack(bytes(ID_BYTES), 1, 0, 0)[ID_BYTES:]
"""What stands between id and result of an item without key and batch, done at first attempt."""


def encode_result(
    item_id: bytes, result: bytes, *, attempt: int, key: bytes, batch: bytes
) -> bytes:
    return _ROW.pack(item_id, attempt, len(key), len(batch)) + key + batch + result


def decode_result(row: bytes) -> tuple[bytes, int, str, str, bytes]:
    """Id, attempt, key, batch, result."""
    item_id, attempt, key_size, batch_size = _ROW.unpack_from(row)
    key_end = _ROW.size + key_size
    batch_end = key_end + batch_size
    key, batch = row[_ROW.size : key_end], row[key_end:batch_end]
    return item_id, attempt, key.decode(), batch.decode(), row[batch_end:]
