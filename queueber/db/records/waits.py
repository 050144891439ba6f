"""Items that wait for others: `waits` has what each waits for, `waited_for` who waits for each.

What is waited for is 17 bytes: a kind, and the id of an item, or the number of a batch. Beside
these `waited_for` has a note of each that has ended and still has items that wait for it.
"""

import struct
from collections.abc import Sequence
from typing import NamedTuple

from queueber.db.records.remembered import BATCH_NUMBER_BYTES, batch_number_part
from queueber.ids import ItemId
from queueber.limits import ID_BYTES

ITEM, BATCH = b"\0", b"\1"
ENDED_ITEMS, ENDED_BATCH = b"\2", b"\3"
"""What keys of notes begin with."""
DONE, DEAD = b"\0", b"\1"
"""How it ended."""
WAITED_FOR_KEY_BYTES = 1 + 2 * ID_BYTES
AFTER_ANY_WAITER = b"\xff" * (ID_BYTES + 1)
_WHAT_BYTES = 1 + ID_BYTES
_DELAY = struct.Struct(">Q")


class Wait(NamedTuple):
    """What one item waits for."""

    delay_ms: int
    """How long it is delayed after that."""
    whats: tuple[bytes, ...]


def item_what(item_id: bytes) -> bytes:
    return ITEM + item_id


def batch_what(number: int) -> bytes:
    return BATCH + batch_number_part(number) + bytes(ID_BYTES - BATCH_NUMBER_BYTES)


def split_what(what: bytes) -> tuple[ItemId | None, int]:
    """The id of an item; or None and the number of a batch."""
    if what[:1] == ITEM:
        return ItemId(what[1:]), 0
    return None, int.from_bytes(what[1 : 1 + BATCH_NUMBER_BYTES])


def items_note(first: bytes, last: bytes) -> bytes:
    """The key of a note about items with consecutive ids."""
    return ENDED_ITEMS + last + first


def batch_note(number: int) -> bytes:
    return ENDED_BATCH + batch_what(number)[1:] + bytes(ID_BYTES)


def noted_range(note: bytes) -> tuple[bytes, bytes]:
    """Where the entries of `waited_for` begin and end that a note is about."""
    last, first = note[1:_WHAT_BYTES], note[_WHAT_BYTES:]
    if note[:1] == ENDED_BATCH:
        return BATCH + last, BATCH + last + AFTER_ANY_WAITER
    return ITEM + first, ITEM + last + AFTER_ANY_WAITER


def split_waited_for(key: bytes) -> tuple[bytes, ItemId]:
    """What is waited for, and the item that waits."""
    return key[:_WHAT_BYTES], ItemId(key[_WHAT_BYTES:])


def encode_wait(delay_ms: int, whats: Sequence[bytes]) -> bytes:
    return _DELAY.pack(delay_ms) + b"".join(whats)


def decode_wait(value: bytes) -> Wait:
    """Raises `ValueError` or `struct.error` if the value is none."""
    (delay_ms,) = _DELAY.unpack_from(value)
    rest = value[_DELAY.size :]
    if not rest or len(rest) % _WHAT_BYTES:
        raise ValueError(f"{len(rest)} bytes do not say what an item waits for")
    whats = tuple(rest[at : at + _WHAT_BYTES] for at in range(0, len(rest), _WHAT_BYTES))
    if any(what[:1] not in (ITEM, BATCH) for what in whats):
        raise ValueError("it waits for what is neither an item nor a batch")
    return Wait(delay_ms, whats)
