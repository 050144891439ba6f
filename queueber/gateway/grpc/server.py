"""Runs the gRPC door: its port, its limits, its services, its end."""

import asyncio
from typing import Any

from queueber.config import split_address
from queueber.errors import QueueberError
from queueber.gateway.app import Gateway
from queueber.gateway.bounds import Bound
from queueber.gateway.grpc import sluice_pb2 as wire
from queueber.gateway.grpc.calls import Calls
from queueber.gateway.grpc.certificates import Certificates
from queueber.gateway.grpc.handed_on import HandedOn
from queueber.gateway.grpc.health import Health
from queueber.gateway.grpc.http2.server import Http2Server
from queueber.gateway.grpc.http2.shared import Handler, Shared
from queueber.gateway.grpc.list_topics import list_topics
from queueber.gateway.grpc.measures import GrpcMeasures
from queueber.gateway.grpc.publish import (
    batch_publish,
    batch_response,
    publish,
    publish_response,
)
from queueber.gateway.grpc.receiving import cut_late_calls
from queueber.gateway.grpc.reflection import reflection_handlers
from queueber.gateway.grpc.streams import METHOD, Streams
from queueber.gateway.log import log
from queueber.limits import MIB, PAYLOAD_BYTES_MAX, SECOND_MS

SERVICE = wire.DESCRIPTOR.services_by_name["Sluice"].full_name
MESSAGE_BYTES_MAX = PAYLOAD_BYTES_MAX + MIB
"""Of what is published: so that a payload above the limit is refused for what it is."""
_PUBLISHING = ("Publish", "BatchPublish")


def _path_of(method: str) -> bytes:
    return f"/{SERVICE}/{method}".encode()


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
        self._certificates = Certificates(settings)
        self._server = Http2Server(self._shared(gateway))
        self._tasks: list[asyncio.Task[Any]] = []
        self.ended: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        """Done when it was stopped, or cannot go on."""

    def _shared(self, gateway: Gateway) -> Shared:
        settings = self._settings
        return Shared(
            handlers=self._handlers(),
            bodies=gateway.bounds.bodies,
            message_bytes_max=dict.fromkeys(map(_path_of, _PUBLISHING), MESSAGE_BYTES_MAX),
            header_bytes_max=settings.header_bytes_max,
            connections_max=settings.connections_max,
            header_timeout=settings.header_timeout_ms / SECOND_MS,
            answer_timeout=settings.answer_timeout_ms / SECOND_MS,
            idle_timeout=settings.idle_timeout_ms / SECOND_MS,
        )

    def _handlers(self) -> dict[bytes, Handler]:
        calls = self._calls
        ours: dict[str, Handler] = {
            "Publish": HandedOn(calls, "Publish", wire.PublishRequest, publish, publish_response),
            "BatchPublish": HandedOn(
                calls, "BatchPublish", wire.BatchPublishRequest, batch_publish, batch_response
            ),
            "ListTopics": calls.unary("ListTopics", wire.ListTopicsRequest, list_topics),
            METHOD: self._streams.subscribe,
        }
        return {
            **{_path_of(name): each for name, each in ours.items()},
            **self._health.handlers(self._streams),
            **reflection_handlers(self._streams, SERVICE),
        }

    async def start(self) -> None:
        host, port = split_address(self._address)
        try:
            await self._server.start(host, port, self._certificates.context())
        except OSError:
            raise QueueberError(
                f"cannot listen on {self._address}; choose another with --grpc"
            ) from None
        late = cut_late_calls(
            self._server.shared.waiting,
            self._settings.body_timeout_ms / SECOND_MS,
            self._settings.bodies_bytes_max // 2,
        )
        self._tasks = [
            asyncio.ensure_future(each) for each in (self._server.run(), late, self._health.run())
        ]
        for task in self._tasks:
            task.add_done_callback(self._end)
        log.info("grpc_listening", address=self._address)

    def reload(self) -> None:
        """Read the certificate again, for new connections."""
        self._certificates.reload()

    async def stop(self) -> None:
        """End the streams, finish the calls that are under way, and listen no more."""
        for task in self._tasks:
            task.cancel()
        self._health.stop()
        self._streams.stop()
        await self._server.stop(self._settings.shutdown_timeout_ms / SECOND_MS)

    def _end(self, _: "asyncio.Task[Any]") -> None:
        """One of the tasks that watch connections and calls has ended, which none does by itself:
        without it there are no bounds."""
        if not self.ended.done():
            self.ended.set_result(True)
