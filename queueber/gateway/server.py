"""Runs the application on uvicorn: one process, on a socket that is there already."""

import asyncio
import logging
import socket

import structlog
import uvicorn

from queueber.gateway.app import Gateway, make_app
from queueber.gateway.protocol import bounded, watch
from queueber.gateway.settings import GatewaySettings
from queueber.limits import SECOND_MS

_log = structlog.get_logger("queueber.gateway")
_BACKLOG = 2048


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, app: Gateway, stop: asyncio.Event) -> None:
        super().__init__(config)
        self._app = app
        self._stop = stop

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._watching = asyncio.ensure_future(watch(self.server_state, self._app.settings))

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._app.bounds.stop_waiting()
        self._watching.cancel()
        await super().shutdown(sockets)


async def run_gateway(
    settings: GatewaySettings, listening: socket.socket, stop: asyncio.Event
) -> None:
    """Serve on the socket until `stop` is set; then finish what is under way."""
    app = make_app(settings)
    # Its own messages would be lines that nobody else's log has.
    logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL + 1)
    config = uvicorn.Config(
        app,
        http=bounded(settings),
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        backlog=_BACKLOG,
        timeout_graceful_shutdown=max(1, settings.shutdown_timeout_ms // SECOND_MS),
    )
    server = _Server(config, app, stop)
    _log.info("gateway_listening", address=address_of(listening), server=settings.server)
    serving = asyncio.ensure_future(server._serve([listening]))
    stopping = asyncio.ensure_future(stop.wait())
    await asyncio.wait((serving, stopping), return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    server.should_exit = True
    await serving


def listen(address: tuple[str, int]) -> socket.socket:
    """A socket that listens there; port 0 chooses a free one."""
    host, port = address
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    if found:
        family = found[0][0]
        host, port = found[0][4][0], int(found[0][4][1])  # type: ignore[assignment]
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listening.bind((host, port))
    listening.listen(_BACKLOG)
    return listening


def address_of(listening: socket.socket) -> str:
    host, port = listening.getsockname()[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
