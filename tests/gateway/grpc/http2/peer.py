"""A connection without a socket: what the peer sends is handed over, what it is sent is noted."""

import asyncio
from collections.abc import Callable
from typing import Any

from hpack import Decoder, Encoder

from queueber.gateway.bounds import Bound
from queueber.gateway.grpc.http2.call import Call
from queueber.gateway.grpc.http2.connection import Connection
from queueber.gateway.grpc.http2.frames import (
    DATA,
    END_HEADERS,
    END_STREAM,
    HEAD,
    HEADERS,
    PREFACE,
    frame,
    settings,
)
from queueber.gateway.grpc.http2.messages import prefix
from queueber.gateway.grpc.http2.shared import Handling, Shared
from queueber.gateway.grpc.statuses import Status

HEADS = [
    (":method", "POST"), (":scheme", "http"), (":path", "/s/M"), (":authority", "h"),
    ("te", "trailers"), ("content-type", "application/grpc"),
]  # fmt: skip
Frames = list[tuple[int, int, int, bytes]]
"""Kind, flags, stream and what it carries."""
Handler = Callable[[Call], Handling]


async def echo(call: Call) -> None:
    """Answer with what was said."""
    while (raw := await call.read()) is not None:
        await call.write(raw)
    call.finish(Status.OK)


class Transport(asyncio.Transport):
    def __init__(self) -> None:
        super().__init__()
        self.sent = b""
        self.is_over = False
        self.reads = True

    def write(self, data: Any) -> None:
        self.sent += bytes(data)

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        pass

    def pause_reading(self) -> None:
        self.reads = False

    def resume_reading(self) -> None:
        self.reads = True

    def close(self) -> None:
        self.is_over = True

    def abort(self) -> None:
        self.is_over = True


class Peer:
    """The other side of one connection. Use it inside of a loop."""

    def __init__(self, handler: Handler = echo, *, bodies: int = 1 << 30) -> None:
        self.shared = Shared(
            handlers={b"/s/M": handler}, bodies=Bound("bytes", bodies),
            message_bytes_max={b"/s/M": 1 << 20},
            header_bytes_max=16_384, connections_max=2, header_timeout=1.0, answer_timeout=1.0,
            idle_timeout=10.0,
        )  # fmt: skip
        self.connection = Connection(self.shared)
        self.transport = Transport()
        self.connection.connection_made(self.transport)
        self._encoder = Encoder()
        self._decoder = Decoder()
        self._read = 0

    async def say(self, *frames: bytes) -> Frames:
        """Send, and wait until all was handled; the frames that came since."""
        self.connection.data_received(b"".join(frames))
        return await self.heard()

    async def greet(self, pairs: dict[int, int] | None = None) -> None:
        await self.say(PREFACE, settings(pairs or {}))

    async def heard(self) -> Frames:
        for _ in range(200):
            await asyncio.sleep(0)
        found = frames_of(self.transport.sent[self._read :])
        self._read = len(self.transport.sent)
        return found

    def head(self, stream: int, *more: tuple[str, str], flags: int = END_HEADERS) -> bytes:
        return frame(HEADERS, flags, stream, self._encoder.encode([*HEADS, *more]))

    def fields(self, block: bytes) -> dict[str, str]:
        return {str(name): str(value) for name, value in self._decoder.decode(block)}


def message(stream: int, raw: bytes, *, is_last: bool = False) -> bytes:
    whole = prefix(len(raw)) + raw
    return frame(DATA, END_STREAM if is_last else 0, stream, whole)


def frames_of(sent: bytes) -> Frames:
    found: Frames = []
    while sent:
        high, low, kind, flags, stream = HEAD.unpack_from(sent)
        end = HEAD.size + (high << 8 | low)
        found.append((kind, flags, stream, sent[HEAD.size : end]))
        sent = sent[end:]
    return found
