"""Sending answers: large ones are encoded and sent in pieces, so that others get their turns.

An answer that is not read costs its own bytes once and one piece in the transport. Every piece is
let go when it is sent.
"""

import asyncio
import contextlib
from collections.abc import Iterator
from typing import Protocol

import msgspec
from starlette.types import Message, Scope, Send

from queueber.gateway.bodies import HungUp
from queueber.gateway.bounds import Bound
from queueber.gateway.origins import Headers
from queueber.limits import KIB

PIECE_BYTES = 128 * KIB
"""Of JSON, which takes a millisecond to encode."""
PART_BYTES = 512 * KIB
"""Of bytes that are sent as they are stored."""
CONNECTION = "queueber.connection"
"""Where the scope of a request has its connection, if the gateway's own protocol made it."""

_encoder = msgspec.json.Encoder()
Piece = bytes | memoryview


class Connection(Protocol):
    @property
    def is_full(self) -> bool:
        """Whether the caller has to read before more is sent."""

    @property
    def is_gone(self) -> bool:
        """Whether the caller has hung up."""

    def hold(self, size: int) -> None:
        """So many bytes more, or fewer, wait until the caller reads."""


def check_present(scope: Scope) -> None:
    """Raise `HungUp` if nobody waits for the answer any more."""
    connection: Connection | None = scope.get(CONNECTION)
    if connection is not None and connection.is_gone:
        raise HungUp


class Sending:
    """Sends messages and knows the status of the answer; 0 until it has begun."""

    __slots__ = ("_connection", "_requests", "_send", "added", "status")

    def __init__(self, scope: Scope, send: Send) -> None:
        self._connection: Connection | None = scope.get(CONNECTION)
        self._send = send
        self._requests: Bound | None = None
        """What the request counts in while it is handled."""
        self.status = 0
        self.added: Headers = []
        """Headers of every answer to this request, errors among them."""

    @contextlib.contextmanager
    def counted(self, requests: Bound) -> Iterator[None]:
        """The request is one of those under way, but while its caller has to read."""
        with requests.taken():
            self._requests = requests
            try:
                yield
            finally:
                self._requests = None

    async def __call__(self, message: Message) -> None:
        if not self.status:
            self.status = message["status"]
            if self.added:
                message["headers"] = [*message["headers"], *self.added]
        body = message.get("body", b"")
        is_waiting = self._connection is not None and self._connection.is_full
        if len(body) > PART_BYTES or (is_waiting and body):
            await self._send_parts(body, more_body=message.get("more_body", False))
        else:
            await self._pass_on(message)

    async def _pass_on(self, message: Message) -> None:
        """A caller that does not read takes no place of those who do: the bytes that it has not
        read are bounded, and connections are."""
        requests = self._requests
        if requests is None or self._connection is None or not self._connection.is_full:
            await self._send(message)
            return
        requests.give_back()
        try:
            await self._send(message)
        finally:
            requests.used += 1  # not refused: it was admitted before

    async def send_pieces(self, pieces: list[Piece], *, more_body: bool = False) -> None:
        """The body of an answer. The next piece is sent when the caller has read the last one.

        The list is empty afterwards: a piece that was sent is not kept for the sake of the others.
        """
        left = sum(map(len, pieces))
        self._hold(left)
        try:
            pieces.reverse()
            while pieces:
                size = len(pieces[-1])
                message = {"type": "http.response.body", "body": pieces.pop()}
                await self._pass_on(message | {"more_body": bool(pieces) or more_body})
                self._hold(-size)
                left -= size
                if pieces:
                    await asyncio.sleep(0)  # others get a turn: sending does not wait by itself
        finally:
            self._hold(-left)

    async def _send_parts(self, body: bytes, *, more_body: bool) -> None:
        """One object that is sent in pieces: it stays until the last of them is sent."""
        parts = _parts(body)
        self._hold(len(body))
        try:
            for at, part in enumerate(parts, 1):
                more = at < len(parts) or more_body
                await self._pass_on({"type": "http.response.body", "body": part, "more_body": more})
                if at < len(parts):
                    await asyncio.sleep(0)
        finally:
            self._hold(-len(body))

    def _hold(self, size: int) -> None:
        if self._connection is not None and size:
            self._connection.hold(size)


def _parts(body: bytes) -> list[Piece]:
    if len(body) <= PART_BYTES:
        return [body]
    view = memoryview(body)
    return [view[at : at + PART_BYTES] for at in range(0, len(view), PART_BYTES)]


async def encode_pieces(value: msgspec.Struct) -> list[Piece]:
    """The JSON of a struct, in pieces; others get turns meanwhile.

    Lists are encoded one element at a time: contents of megabytes take milliseconds to encode.
    """
    config = value.__struct_config__
    if config.array_like or config.tag is not None or config.omit_defaults:
        return [_encoder.encode(value)]
    pieces: list[Piece] = []
    buffer, begin = bytearray(), b"{"
    for field in msgspec.structs.fields(value):
        buffer += b'%b"%b":' % (begin, field.encode_name.encode())
        begin = b","
        found = getattr(value, field.name)
        if not isinstance(found, list) or not found:
            _encoder.encode_into(found, buffer, -1)
            continue
        before = b"["
        for element in found:
            buffer += before
            before = b","
            _encoder.encode_into(element, buffer, -1)
            if len(buffer) > PIECE_BYTES:
                pieces += _taken(buffer)
                await asyncio.sleep(0)
        buffer += b"]"
    buffer += b"}" if begin == b"," else b"{}"
    return [*pieces, bytes(buffer)]


def _taken(buffer: bytearray) -> list[bytes]:
    """Whole pieces from the beginning of the buffer, of one size so that their memory is reused."""
    end = len(buffer) - len(buffer) % PIECE_BYTES
    with memoryview(buffer) as view:
        pieces = [bytes(view[at : at + PIECE_BYTES]) for at in range(0, end, PIECE_BYTES)]
    del buffer[:end]
    return pieces
