"""The client's end of a connection."""

import asyncio
import ssl
from typing import Any

import capnp

from queueber.wire.stream import SCRATCH_BYTES, Stream

_GOODBYE_SECONDS_MAX = 1.0
"""How long a connection with TLS that we close waits for the server to confirm it."""


class ClientStream(Stream):
    def __init__(self, inner: Any, scratch: memoryview) -> None:
        super().__init__(inner, scratch)
        self.is_over = asyncio.Event()
        self.failure: BaseException | None = None
        """Why the connection was lost, if it was not closed."""
        self._is_socket_gone = False

    def connection_lost(self, exc: BaseException | None) -> None:
        self.failure = exc
        self._is_socket_gone = True
        # With TLS a connection cannot stay half open until the last answers are read.
        if not (self._has_ended and self._unread):
            self._lose()

    def _hand_over_unread(self) -> None:
        super()._hand_over_unread()
        if self._is_socket_gone and not self._unread:
            self._lose()

    def close(self) -> None:
        super().close()
        if self._is_socket_gone:
            self._lose()

    def _lose(self) -> None:
        if not self.is_over.is_set():
            self.is_over.set()
            super().connection_lost(self.failure)


async def connect_stream(
    host: str, port: int, context: ssl.SSLContext | None = None, server_name: str | None = None
) -> tuple[Any, ClientStream]:
    """As `capnp.AsyncIoStream.create_connection`, with fewer system calls."""
    made: list[Any] = []
    stream = ClientStream(
        capnp.AsyncIoStream._connect(made.append), memoryview(bytearray(SCRATCH_BYTES))
    )
    loop = asyncio.get_running_loop()
    if context is None:
        await loop.create_connection(lambda: stream, host, port)
    else:
        await loop.create_connection(
            lambda: stream,
            host,
            port,
            ssl=context,
            server_hostname=server_name or host,
            ssl_shutdown_timeout=_GOODBYE_SECONDS_MAX,
        )
    return made[0], stream
