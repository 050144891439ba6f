"""Items out of a stream, as they come and in bounded memory."""

import select
from collections.abc import Iterator
from io import BufferedReader

from queueber.errors import ResourceExhausted
from queueber.limits import KIB

_READ_BYTES = 256 * KIB


def split_stream(stream: BufferedReader, end: bytes, item_bytes_max: int) -> Iterator[list[bytes]]:
    """The items that came together, without empty ones; the last of all needs no end.

    An item that the server would not take ends the reading: a stream without ends must not fill the
    memory.
    """
    parts: list[bytes] = []
    parts_bytes = 0
    # Reads what is there instead of waiting for more: what somebody types is sent at once.
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
    """Whether a read would have to wait. A file never makes one wait."""
    readable, _, _ = select.select([stream], [], [], 0)
    return not readable
