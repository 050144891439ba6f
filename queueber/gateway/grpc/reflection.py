"""The service `grpc.reflection`, which tells tools about our messages."""

from collections.abc import AsyncIterator
from typing import Any

from queueber.gateway.grpc.calls import parsed
from queueber.gateway.grpc.http2.shared import Handler
from queueber.gateway.grpc.streams import Streams
from queueber.limits import GRPC_REFLECTION_SECONDS_MAX

_VERSIONS = ("v1", "v1alpha")
"""Both have the same messages, and tools ask for the newer one first."""


def reflection_handlers(streams: Streams, service: str) -> dict[bytes, Handler]:
    async def describe(said: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        # Takes a while to import, and most gateways are never asked.
        from grpc_reflection.v1alpha import reflection_pb2 as shown
        from grpc_reflection.v1alpha._async import ReflectionServicer

        async def requests() -> AsyncIterator[Any]:
            async for raw in said:
                yield parsed(shown.ServerReflectionRequest, raw)

        names = [service, "grpc.health.v1.Health"]
        names += [f"grpc.reflection.{each}.ServerReflection" for each in _VERSIONS]
        servicer = ReflectionServicer(service_names=names)
        async for answer in servicer.ServerReflectionInfo(requests(), None):
            yield answer.SerializeToString()

    handler = streams.for_all(describe, "ServerReflectionInfo", GRPC_REFLECTION_SECONDS_MAX)
    return {
        f"/grpc.reflection.{each}.ServerReflection/ServerReflectionInfo".encode(): handler
        for each in _VERSIONS
    }
