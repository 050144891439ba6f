"""Frames between the program and its engine: a letter, a length, bytes.

program                      engine
S statement        ──▶
                   ◀──       N what it needs of each table; or E error
T table  B rows …  ──▶       for each table
G go               ──▶       X instead: forget the statement
                   ◀──       C columns, B rows …, Z end; or E error
"""

import os
from enum import Enum
from struct import Struct

NO_MEMORY = "memory"
"""The text of an error that the program puts into words: it knows how much there was."""
_HEAD = Struct("<cI")


class Frame(Enum):
    STATEMENT = b"S"
    NEEDS = b"N"
    TABLE = b"T"
    ROWS = b"B"
    GO = b"G"
    DROP = b"X"
    COLUMNS = b"C"
    END = b"Z"
    ERROR = b"E"


class FrameLost(Exception):
    """The other side has ended."""


def send(descriptor: int, frame: Frame, body: bytes | memoryview = b"") -> None:
    try:
        _write(descriptor, _HEAD.pack(frame.value, len(body)))
        _write(descriptor, body)
    except OSError as error:
        raise FrameLost from error


def receive(descriptor: int) -> tuple[Frame, bytearray]:
    kind, size = _HEAD.unpack(_read(descriptor, _HEAD.size))
    return Frame(kind), _read(descriptor, size)


def _write(descriptor: int, data: bytes | memoryview) -> None:
    left = memoryview(data)
    while left:
        left = left[os.write(descriptor, left) :]


def _read(descriptor: int, size: int) -> bytearray:
    found = bytearray(size)
    left = memoryview(found)
    while left:
        try:
            count = os.readv(descriptor, [left])
        except OSError as error:
            raise FrameLost from error
        if not count:
            raise FrameLost
        left = left[count:]
    return found
