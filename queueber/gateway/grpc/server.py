"""Runs the gRPC door: its port, its limits, its services, its end."""

import asyncio
import contextlib
from typing import Any

from queueber.config import split_address
from queueber.errors import QueueberError
from queueber.gateway.app import Gateway
from queueber.gateway.bounds import Bound
from queueber.gateway.grpc import sluice_pb2 as wire
from queueber.gateway.grpc.calls import Calls
from queueber.gateway.grpc.certificates import Certificates
from queueber.gateway.grpc.health import Health, add_reflection
from queueber.gateway.grpc.known_calls import known_calls_server
from queueber.gateway.grpc.list_topics import list_topics
from queueber.gateway.grpc.measures import GrpcMeasures
from queueber.gateway.grpc.publish import batch_publish, publish
from queueber.gateway.grpc.streams import METHOD, Streams
from queueber.gateway.log import log
from queueber.gateway.settings import GatewaySettings
from queueber.limits import KIB, MIB, PAYLOAD_BYTES_MAX, SECOND_MS

SERVICE = wire.DESCRIPTOR.services_by_name["Sluice"].full_name
MESSAGE_BYTES_MAX = PAYLOAD_BYTES_MAX + MIB
"""Of a message that is received: so that a payload above the limit is refused for what it is."""
_SENT_BYTES_MAX = 2 * PAYLOAD_BYTES_MAX
_CALLS_OF_CONNECTION_MAX = 100
"""At a time; clients wait with others by themselves. So one caller alone does not fill the core's
queue of calls, which then cancels some of all callers."""
_PING_MS = 30 * SECOND_MS
_PING_TIMEOUT_MS = 20 * SECOND_MS
_CALLER_PING_MS_MIN = 10 * SECOND_MS
"""How often callers may ping while nothing is sent; whoever does so more often is cut off."""
_NO_COMPRESSION = 1


def _options(settings: GatewaySettings) -> list[tuple[str, int]]:
    return [
        ("grpc.max_receive_message_length", MESSAGE_BYTES_MAX),
        ("grpc.max_send_message_length", _SENT_BYTES_MAX),
        ("grpc.max_concurrent_streams", _CALLS_OF_CONNECTION_MAX),
        ("grpc.max_allowed_incoming_connections", settings.connections_max),
        ("grpc.max_metadata_size", settings.header_bytes_max),
        ("grpc.absolute_max_metadata_size", settings.header_bytes_max),
        ("grpc.server_handshake_timeout_ms", settings.header_timeout_ms),
        ("grpc.max_connection_idle_ms", settings.idle_timeout_ms),
        ("grpc.keepalive_time_ms", _PING_MS),
        ("grpc.keepalive_timeout_ms", _PING_TIMEOUT_MS),
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.http2.min_ping_interval_without_data_ms", _CALLER_PING_MS_MIN),
        ("grpc.http2.hpack_table_size.decoder", 4 * KIB),
        # A message of a few bytes may be compressed gigabytes.
        ("grpc.compression_enabled_algorithms_bitset", _NO_COMPRESSION),
        # The gateway has made sure that nobody else has the port; its processes share it.
        ("grpc.so_reuseport", 1),
    ]


class GrpcDoor:
    """One process of it. `start` it once, and `stop` it before the gateway's clients close."""

    def __init__(self, gateway: Gateway) -> None:
        settings = gateway.settings
        assert settings.grpc is not None, "whoever makes one has looked"
        self._settings, self._address = settings, settings.grpc
        bound = Bound("streams are open", settings.grpc_streams_max)
        measures = GrpcMeasures(gateway.measures.registry, bound)
        self._calls = Calls(settings, gateway.pool, gateway.bounds, measures)
        self._streams = Streams(self._calls, bound)
        self._health = Health(gateway, SERVICE)
        self._certificates = Certificates.of(settings)
        self._server = known_calls_server(_options(settings))
        self._tasks: list[asyncio.Task[Any]] = []
        self.ended: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        """Done when the server has ended, by itself or because it was stopped."""

    async def start(self) -> None:
        calls, server = self._calls, self._server
        handlers = {
            "Publish": calls.unary("Publish", wire.PublishRequest, publish),
            "BatchPublish": calls.unary("BatchPublish", wire.BatchPublishRequest, batch_publish),
            "ListTopics": calls.unary("ListTopics", wire.ListTopicsRequest, list_topics),
            METHOD: self._streams.handler(),
        }
        server.add_registered_method_handlers(SERVICE, handlers)
        self._health.add_to(server, self._streams)
        add_reflection(server, self._streams, SERVICE)
        self._listen()
        await server.start()
        self.ended = asyncio.ensure_future(server.wait_for_termination())
        self._tasks = [
            asyncio.ensure_future(each) for each in (calls.receiving.run(), self._health.run())
        ]
        log.info("grpc_listening", address=self._address)

    def _listen(self) -> None:
        host, port = split_address(self._address)
        address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        try:
            if self._certificates is None:
                self._server.add_insecure_port(address)
            else:
                self._server.add_secure_port(address, self._certificates.credentials())
        except RuntimeError:
            raise QueueberError(
                f"cannot listen on {self._address}; choose another with --grpc"
            ) from None

    def reload(self) -> None:
        """Read the certificate again, for new connections."""
        if self._certificates is not None:
            self._certificates.reload()

    async def stop(self) -> None:
        """End the streams, finish the calls that are under way, and listen no more."""
        for task in self._tasks:
            task.cancel()
        self._health.stop()
        self._streams.stop()
        with contextlib.suppress(asyncio.CancelledError):
            await self._server.stop(self._settings.shutdown_timeout_ms / SECOND_MS)
