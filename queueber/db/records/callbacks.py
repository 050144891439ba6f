"""Callbacks of batches: `CallbackRecord` of `schema/storage.capnp`, under queue and batch number.

One whose item is to be added now has a second entry, which names the queue that gets it.
"""

from hashlib import blake2b
from typing import NamedTuple

from queueber.db.records.blocks import pack_attributes, unpack_attributes
from queueber.db.records.item_options import decode_future_options, encode_future_options
from queueber.db.records.keys import DIGEST_BYTES
from queueber.db.records.remembered import BATCH_NUMBER_BYTES, batch_number_part
from queueber.model import NO_OPTIONS, Callback
from queueber.schema import storage

_RECORD = b"\0"
DUE = b"\1"
"""What keys of callbacks begin with whose item is to be added now."""
AFTER_DUE = b"\2"
CALLBACK_KEY_BYTES = 1 + BATCH_NUMBER_BYTES


class CallbackRecord(NamedTuple):
    callback: Callback
    """Once the item was added, only the queue is left of it."""
    created_at_ms: int
    digest: bytes
    """Of the callback as it was given."""
    item_id: bytes = b""
    """The item that was added; empty: it was not."""


def callback_key(number: int) -> bytes:
    return _RECORD + batch_number_part(number)


def due_key(number: int) -> bytes:
    return DUE + batch_number_part(number)


def number_of(key: bytes) -> int:
    """The number of the batch, from either key."""
    return int.from_bytes(key[1:])


def callback_digest(callback: Callback) -> bytes:
    parts = [
        callback.to.encode(),
        callback.key.encode(),
        bytes([callback.priority]),
        pack_attributes(dict(sorted(callback.attributes.items()))),
        callback.contents,
    ]
    if callback.options != NO_OPTIONS:
        # Last, and only if there are some: what was stored before there were options stays known.
        parts.append(encode_future_options(callback.options))
    digest = blake2b(digest_size=DIGEST_BYTES)
    for part in parts:
        digest.update(len(part).to_bytes(4) + part)
    return digest.digest()


def encode_callback(record: CallbackRecord) -> bytes:
    callback = record.callback
    message = storage.CallbackRecord.new_message(
        to=callback.to,
        contents=callback.contents,
        key=callback.key,
        priority=callback.priority,
        attributes=pack_attributes(callback.attributes),
        createdAtMs=record.created_at_ms,
        digest=record.digest,
        itemId=record.item_id,
        options=encode_future_options(callback.options),
    )
    encoded: bytes = message.to_bytes()
    return encoded


def decode_callback(value: bytes) -> CallbackRecord:
    """Raises if a part of it is wrong."""
    with storage.CallbackRecord.from_bytes(value) as r:
        attributes = unpack_attributes(r.attributes)
        options = decode_future_options(r.options)
        callback = Callback(r.to, bytes(r.contents), r.key, r.priority, attributes, options)
        return CallbackRecord(callback, r.createdAtMs, bytes(r.digest), bytes(r.itemId))
