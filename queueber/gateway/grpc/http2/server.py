"""Listens, watches all connections, and takes them down in order."""

import asyncio
import contextlib
import ssl

from queueber.gateway.grpc.http2.connection import Connection
from queueber.gateway.grpc.http2.shared import Shared
from queueber.sockets import BACKLOG

_WATCH_SECONDS = 1.0


class Http2Server:
    def __init__(self, shared: Shared) -> None:
        self.shared = shared
        self._listening: asyncio.Server | None = None

    async def start(self, host: str, port: int, tls: ssl.SSLContext | None) -> None:
        """Raises `OSError` if it cannot listen there. The processes of a gateway share the port."""
        shared = self.shared
        self._listening = await asyncio.get_running_loop().create_server(
            lambda: Connection(shared),
            host,
            port,
            ssl=tls,
            ssl_handshake_timeout=None if tls is None else shared.header_timeout,
            backlog=BACKLOG,
            reuse_port=True,
        )

    async def run(self) -> None:
        """Look at all connections now and then, until it is cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(_WATCH_SECONDS)
            now = loop.time()
            for each in list(self.shared.connections):
                each.look(now)

    async def stop(self, seconds: float) -> None:
        """Listen no more, and let calls end that are under way; cut those that take longer."""
        if self._listening is not None:
            self._listening.close()
        self.shared.is_stopping = True
        for each in list(self.shared.connections):
            each.stop()
        if self.shared.connections:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.shared.are_gone.wait(), seconds)
        for each in list(self.shared.connections):
            each.abort()
