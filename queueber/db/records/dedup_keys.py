"""Dedup keys: the id of the item that has the key, and when the key is forgotten."""

from queueber.db.records.keys import TIME_BYTES
from queueber.ids import ItemId
from queueber.limits import ID_BYTES

KEY_ENTRY_BYTES = ID_BYTES + TIME_BYTES


def encode_key_entry(item_id: bytes, forget_at_ms: int) -> bytes:
    return item_id + forget_at_ms.to_bytes(TIME_BYTES)


def decode_key_entry(value: bytes) -> tuple[ItemId, int]:
    return ItemId(value[:ID_BYTES]), int.from_bytes(value[ID_BYTES:])
