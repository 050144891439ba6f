"""Runs the application on uvicorn: one process, on a socket that is there already."""

import asyncio
import logging
import signal
import socket
import ssl
from typing import Any, Protocol

import uvicorn

from queueber.errors import QueueberError
from queueber.gateway.app import Gateway, make_app
from queueber.gateway.log import log
from queueber.gateway.protocol import bounded, watch
from queueber.gateway.settings import GatewaySettings
from queueber.limits import SECOND_MS
from queueber.sockets import BACKLOG, address_of
from queueber.tls import ServerTls


class Door(Protocol):
    """Another port of the gateway."""

    ended: "asyncio.Future[bool]"

    async def start(self) -> None: ...
    async def stop(self) -> None: ...
    def reload(self) -> None: ...


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, app: Gateway) -> None:
        super().__init__(config)
        self._app = app

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._watching = asyncio.ensure_future(watch(self.server_state))

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
        http=bounded(settings, app.bounds.unread),
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        backlog=BACKLOG,
        timeout_graceful_shutdown=max(1, settings.shutdown_timeout_ms // SECOND_MS),
    )
    config.load()
    door = _grpc_door(app)
    config.ssl = _tls_context(settings, door)
    server = _Server(config, app)
    if door is not None:
        await door.start()
    # Not `serve`, which takes over the signals of the process.
    serving = asyncio.ensure_future(server._serve([listening]))
    stopping = asyncio.ensure_future(stop.wait())
    log.info("gateway_listening", address=address_of(listening), server=settings.server)
    ends: set[asyncio.Future[Any]] = {serving, stopping}
    if door is not None:
        ends.add(door.ended)
    await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
    has_died = door is not None and door.ended.done()
    stopping.cancel()
    server.should_exit = True
    # Both at once: the clients that they share are closed when the last request is answered.
    app.holds_clients = None if door is None else asyncio.ensure_future(door.stop())
    await serving
    log.info("gateway_stopped")
    if has_died:
        # Whoever has started this process starts it again.
        raise QueueberError("gRPC has ended by itself, which is a bug of it or of the gateway")


def _grpc_door(app: Gateway) -> Door | None:
    if app.settings.grpc is None:
        return None
    from queueber.gateway.grpc.server import GrpcDoor  # needs packages that HTTP does not

    return GrpcDoor(app)


def _tls_context(settings: GatewaySettings, door: Door | None) -> ssl.SSLContext | None:
    """The context of the HTTP port. On SIGHUP its files are read again, for new connections, and
    so does gRPC."""
    if settings.tls_certificate is None:
        return None
    files = ServerTls(settings.tls_certificate, settings.tls_key, None)
    present = files()

    def choose(opened: ssl.SSLObject | ssl.SSLSocket, *_: object) -> None:
        opened.context = files()

    def reload() -> None:
        try:
            files.reload()
        except QueueberError as error:
            log.error("reload_failed", what="certificates", reason=str(error))
        else:
            log.info("reloaded", what=["certificates"])
        if door is not None:
            door.reload()

    # Called in every handshake: so the one context that uvicorn has follows the files.
    present.sni_callback = choose
    asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, reload)
    return present
