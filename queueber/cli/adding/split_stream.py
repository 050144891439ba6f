"""Splits a stream into items as data arrives, in bounded memory."""

import select
from collections.abc import Iterator
from io import BufferedReader

from queueber.errors import ResourceExhausted
from queueber.limits import KIB

_READ_BYTES = 256 * KIB


def split_stream(stream: BufferedReader, end: bytes, item_bytes_max: int) -> Iterator[list[bytes]]:
    """Yield the items of each block that was read, without empty ones. `end` separates items.

    Raises `ResourceExhausted` for an item above the server's limit, so that a stream without
    separators does not fill the memory.
    """
    parts: list[bytes] = []
    parts_bytes = 0
    # `read1` returns what has arrived, so that lines typed by a person are sent at once.
    while block := stream.read1(_READ_BYTES):
        first, *others = block.split(end)
        parts.append(first)
        parts_bytes += len(first)
        if parts_bytes > item_bytes_max:
            raise ResourceExhausted(
                f"an item of standard input has more than {item_bytes_max} bytes, the limit"
            )
        if others:
            ended = [b"".join(parts), *others[:-1]]
            parts, parts_bytes = [others[-1]], len(others[-1])
            yield [item for item in ended if item]
    if last := b"".join(parts):
        yield [last]


def is_idle(stream: BufferedReader) -> bool:
    """Whether a read would block. A read of a file never blocks."""
    readable, _, _ = select.select([stream], [], [], 0)
    return not readable
