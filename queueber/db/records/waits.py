"""Items that wait for others: `waits` has what each waits for, `waited_for` who waits for each.

What is waited for is 17 bytes: a kind, and the id of an item, or the number of a batch. Beside
these `waited_for` has a note of each end for which somebody waited. Notes are numbered, and read in
that order.
"""

import struct
from collections.abc import Sequence
from typing import NamedTuple

from queueber.db.records.remembered import BATCH_NUMBER_BYTES, batch_number_part
from queueber.ids import ItemId
from queueber.limits import ID_BYTES

ITEM, BATCH = b"\0", b"\1"
NOTES = b"\2"
"""What keys of notes begin with."""
DONE, DEAD = b"\0", b"\1"
"""How it ended."""
AFTER_ANY_WAITER = b"\xff" * (ID_BYTES + 1)
_WHAT_BYTES = 1 + ID_BYTES
WAITED_FOR_KEY_BYTES = _WHAT_BYTES + ID_BYTES
NOTE_KEY_BYTES = 9
_DELAY = struct.Struct(">Q")
_NOTE = struct.Struct(f">c {_WHAT_BYTES}s {_WHAT_BYTES}s {ID_BYTES}s")


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


class Note(NamedTuple):
    """An end, and whom it is about."""

    outcome: bytes
    first: bytes
    last: bytes
    """What has ended: a batch, or items with consecutive ids."""
    newest: bytes
    """The newest id of the queue at that time: an item with a later one began to wait later."""

    def is_about(self, what: bytes, waiter: bytes) -> bool:
        return self.first <= what <= self.last and waiter <= self.newest


def note_key(number: int) -> bytes:
    return NOTES + number.to_bytes(NOTE_KEY_BYTES - 1)


def note_number(key: bytes) -> int:
    """Raises `ValueError` if the key is that of no note."""
    if len(key) != NOTE_KEY_BYTES or key[:1] != NOTES:
        raise ValueError(f"{key.hex()} is not the key of a note")
    return int.from_bytes(key[1:])


def encode_note(note: Note) -> bytes:
    return _NOTE.pack(*note)


def decode_note(value: bytes) -> Note:
    """Raises `ValueError` or `struct.error` if the value is none."""
    note = Note(*_NOTE.unpack(value))
    kinds = {note.first[:1], note.last[:1]}
    if note.outcome not in (DONE, DEAD) or len(kinds) > 1 or not kinds <= {ITEM, BATCH}:
        raise ValueError("it is no note of an end")
    return note


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
