"""The services beside Sluice: health (`grpc.health.v1`) and reflection.

The health of the process is that it answers; that of `sluice.v1.Sluice` is what `/readyz` says:
whether the server answers and takes writes.
"""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import grpc
from grpc_health.v1 import health_pb2
from grpc_reflection.v1alpha import reflection_pb2
from grpc_reflection.v1alpha._async import ReflectionServicer

from queueber.errors import QueueberError
from queueber.gateway.app import Gateway
from queueber.gateway.grpc.calls import Context
from queueber.gateway.grpc.streams import Streams
from queueber.gateway.health import check_ready
from queueber.gateway.problems import Problem

_LOOK_SECONDS = 5.0
_PROCESS = ""
"""The name of the service that stands for all."""
_Answer = health_pb2.HealthCheckResponse


class Health:
    """Not the servicer of the library: there one watcher that does not read stops all others."""

    def __init__(self, gateway: Gateway, service: str) -> None:
        self._gateway = gateway
        self._service = service
        self._statuses = {_PROCESS: _Answer.SERVING, service: _Answer.UNKNOWN}
        self._changed = asyncio.Event()

    def add_to(self, server: grpc.aio.Server, streams: Streams) -> None:
        asked = health_pb2.HealthCheckRequest.FromString
        handlers = {
            "Check": grpc.unary_unary_rpc_method_handler(
                self._check, asked, _Answer.SerializeToString
            ),
            "Watch": grpc.unary_stream_rpc_method_handler(
                streams.counted(self._watch), asked, _Answer.SerializeToString
            ),
        }
        server.add_registered_method_handlers("grpc.health.v1.Health", handlers)

    async def _check(self, request: health_pb2.HealthCheckRequest, context: Context) -> Any:
        status = self._statuses.get(request.service)
        if status is None:
            await context.abort(grpc.StatusCode.NOT_FOUND, "service: there is none of that name")
        return _Answer(status=status)

    async def _watch(
        self, request: health_pb2.HealthCheckRequest, _: Context
    ) -> AsyncIterator[Any]:
        told = None
        while True:
            changed = self._changed
            status = self._statuses.get(request.service, _Answer.SERVICE_UNKNOWN)
            if status != told:
                yield _Answer(status=status)
                told = status
            await changed.wait()

    async def run(self) -> None:
        """Look at the server now and then, until it is cancelled."""
        while True:
            gateway = self._gateway
            try:
                await check_ready(gateway.pool, gateway.settings, gateway.state, None)
            except (QueueberError, Problem):
                self._set(self._service, _Answer.NOT_SERVING)
            else:
                self._set(self._service, _Answer.SERVING)
            await asyncio.sleep(_LOOK_SECONDS)

    def stop(self) -> None:
        for name in self._statuses:
            self._set(name, _Answer.NOT_SERVING)

    def _set(self, name: str, status: Any) -> None:
        if self._statuses[name] != status:
            self._statuses[name] = status
            changed, self._changed = self._changed, asyncio.Event()
            changed.set()


def add_reflection(server: grpc.aio.Server, streams: Streams, service: str) -> None:
    names = [
        service,
        health_pb2.DESCRIPTOR.services_by_name["Health"].full_name,
        reflection_pb2.DESCRIPTOR.services_by_name["ServerReflection"].full_name,
    ]
    servicer = ReflectionServicer(service_names=names)
    handler = grpc.stream_stream_rpc_method_handler(
        streams.counted(servicer.ServerReflectionInfo),
        reflection_pb2.ServerReflectionRequest.FromString,
        reflection_pb2.ServerReflectionResponse.SerializeToString,
    )
    # Both versions have the same messages, and tools ask for the newer one first.
    for version in ("v1", "v1alpha"):
        server.add_registered_method_handlers(
            f"grpc.reflection.{version}.ServerReflection", {"ServerReflectionInfo": handler}
        )
