"""Messages of gRPC in the data of a stream: each has a byte that says whether it is compressed, and
four with its size."""

from collections import deque

PREFIX_BYTES = 5


class CompressedMessage(Exception):
    """A few bytes may be gigabytes: none are unpacked."""


class LargeMessage(Exception):
    """It is said to have so many bytes."""

    def __init__(self, size: int, limit: int) -> None:
        super().__init__(size, limit)
        self.size = size
        self.limit = limit


def prefix(size: int) -> bytes:
    return b"\0" + size.to_bytes(4)


class Messages:
    """What a caller has sent: whole messages, and a part of the next one."""

    __slots__ = ("_bytes_max", "_part", "whole")

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._part = bytearray()
        self.whole: deque[bytes] = deque()

    def add(self, data: bytes) -> None:
        """Raises as soon as the beginning of a message shows that it will not be taken."""
        if not self._part and len(data) >= PREFIX_BYTES:
            # Most messages come alone and whole.
            size = self._size_at(data, 0)
            if len(data) == PREFIX_BYTES + size:
                self.whole.append(data[PREFIX_BYTES:])
                return
        part, at = self._part, 0
        part += data
        while len(part) - at >= PREFIX_BYTES:
            end = at + PREFIX_BYTES + self._size_at(part, at)
            if end > len(part):
                break
            self.whole.append(bytes(part[at + PREFIX_BYTES : end]))
            at = end
        del part[:at]

    def _size_at(self, data: bytes | bytearray, at: int) -> int:
        if data[at]:
            raise CompressedMessage
        size = int.from_bytes(data[at + 1 : at + PREFIX_BYTES])
        if size > self._bytes_max:
            raise LargeMessage(size, self._bytes_max)
        return size

    @property
    def is_between(self) -> bool:
        """Whether no message has begun that has not come to its end."""
        return not self._part

    def clear(self) -> None:
        self._part.clear()
        self.whole.clear()
