"""HTTP/2 as attackers write it: frames by hand, without the rules that libraries keep."""

import contextlib
import socket
import struct
from collections.abc import Iterator

from faults.http.task import Task, send

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RST_STREAM, SETTINGS, PING, WINDOW_UPDATE, CONTINUATION = 0, 1, 3, 4, 6, 8, 9
END_STREAM, END_HEADERS = 1, 4
INITIAL_WINDOW_SIZE = 4
FRAME_BYTES = 16_384


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    return len(payload).to_bytes(3) + bytes([kind, flags]) + stream.to_bytes(4) + payload


def window_settings(size: int) -> bytes:
    """How much the server may send on each stream before it is told to go on."""
    return frame(SETTINGS, 0, 0, struct.pack(">HI", INITIAL_WINDOW_SIZE, size))


def _text(text: bytes) -> bytes:
    """As HPACK writes it, without compression."""
    if len(text) < 127:
        return bytes([len(text)]) + text
    left, sizes = len(text) - 127, b""
    while left >= 128:
        sizes += bytes([left % 128 + 128])
        left //= 128
    return b"\x7f" + sizes + bytes([left]) + text


def field(name: bytes, value: bytes) -> bytes:
    return b"\0" + _text(name) + _text(value)


def path_of(method: bytes) -> bytes:
    return b"/sluice.v1.Sluice/" + method


def head(method: bytes, *more: bytes, path: bytes | None = None) -> bytes:
    """The fields of a call of a method of Sluice, or of another `path`."""
    return b"".join(
        [
            field(b":method", b"POST"),
            field(b":scheme", b"http"),
            field(b":path", path_of(method) if path is None else path),
            field(b":authority", b"localhost"),
            field(b"te", b"trailers"),
            field(b"content-type", b"application/grpc"),
            *more,
        ]
    )


def call(stream: int, method: bytes, *more: bytes) -> bytes:
    return frame(HEADERS, END_HEADERS, stream, head(method, *more))


def message(stream: int, body: bytes, *, is_last: bool = False, is_packed: bool = False) -> bytes:
    """A message of gRPC, in as many frames as it takes."""
    whole = bytes([is_packed]) + len(body).to_bytes(4) + body
    pieces = [whole[at : at + FRAME_BYTES] for at in range(0, len(whole), FRAME_BYTES)]
    return b"".join(
        frame(DATA, END_STREAM if is_last and at == len(pieces) - 1 else 0, stream, piece)
        for at, piece in enumerate(pieces)
    )


@contextlib.contextmanager
def opened(task: Task, count: int, first: bytes = b"") -> Iterator[list[socket.socket]]:
    """Connections that have said hello."""
    with task.connections(count) as connections:
        for connection in connections:
            send(connection, PREFACE + (first or frame(SETTINGS, 0, 0)))
        yield connections


def read_some(connection: socket.socket) -> bool:
    """Take what has come, without waiting; False if the gateway has hung up."""
    connection.setblocking(False)
    try:
        return bool(connection.recv(1 << 20))
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        with contextlib.suppress(OSError):
            connection.settimeout(10)
