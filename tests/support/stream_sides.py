"""The two sides of a stream, without a socket and without Cap'n Proto."""

from typing import Any

from queueber.wire.stream import Stream


class Socket:
    """The transport of a socket: what was done to it."""

    def __init__(self) -> None:
        self.sent: list[bytes] = []
        self.is_reading = True
        self.is_about_to_read = False
        """The loop has asked for a buffer. Whoever pauses it now crashes libuv."""
        self.has_ended = False
        self.is_closed = False

    def write(self, data: bytes) -> None:
        assert not self.has_ended
        assert not self.is_closed
        self.sent.append(data)

    def pause_reading(self) -> None:
        assert not self.is_about_to_read
        self.is_reading = False

    def resume_reading(self) -> None:
        self.is_reading = True

    def is_closing(self) -> bool:
        return self.is_closed

    def can_write_eof(self) -> bool:
        return True

    def write_eof(self) -> None:
        self.has_ended = True

    def close(self) -> None:
        self.is_closed = True

    def abort(self) -> None:
        self.is_closed = True

    def get_extra_info(self, name: str) -> object:
        return ("10.1.2.3", 4567) if name == "peername" else None

    def get_write_buffer_size(self) -> int:
        return 0


class Reader:
    """Reads as Cap'n Proto does: at least so many bytes, at most so many, then it pauses."""

    def __init__(self) -> None:
        self.read = bytearray()
        self.ends = 0
        self.losses: list[BaseException | None] = []
        self.is_paused_for_writing = False

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        transport.pause_reading()

    def ask(self, least: int, most: int) -> None:
        self._buffer, self._least, self._count = memoryview(bytearray(most)), least, 0
        self.is_asking = True
        self.transport.resume_reading()

    is_asking = False

    def get_buffer(self, _: int) -> memoryview:
        assert self.is_asking
        return self._buffer[self._count :]

    def buffer_updated(self, count: int) -> None:
        assert self.is_asking
        self._count += count
        if self._count >= self._least:
            self.read += self._buffer[: self._count]
            self.is_asking = False
            self.transport.pause_reading()

    def eof_received(self) -> None:
        self.ends += 1

    def connection_lost(self, error: BaseException | None) -> None:
        self.losses.append(error)

    def pause_writing(self) -> None:
        self.is_paused_for_writing = True

    def resume_writing(self) -> None:
        self.is_paused_for_writing = False


def receive(stream: Stream, socket: Socket, data: bytes) -> int:
    """As the loop does when the socket has data; returns how much was taken."""
    if not socket.is_reading:
        return 0
    socket.is_about_to_read = True
    buffer = stream.get_buffer(-1)
    count = min(len(buffer), len(data))
    buffer[:count] = data[:count]
    socket.is_about_to_read = False
    stream.buffer_updated(count)
    return count
