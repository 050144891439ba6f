"""The service `grpc.health.v1`.

The health of the process is that it answers; that of `sluice.v1.Sluice` is what `/readyz` says:
whether the server answers and takes writes.
"""

import asyncio
from collections.abc import AsyncIterator
from functools import partial
from typing import Any

from grpc_health.v1 import health_pb2

from queueber.errors import QueueberError
from queueber.gateway.app import Gateway
from queueber.gateway.bounds import Bound
from queueber.gateway.grpc.calls import first_of, parsed
from queueber.gateway.grpc.http2.call import Call
from queueber.gateway.grpc.http2.shared import Handler
from queueber.gateway.grpc.statuses import Status, status_of
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

    def handlers(self, streams: Streams) -> dict[bytes, Handler]:
        return {
            b"/grpc.health.v1.Health/Check": partial(self._check, streams.without_credential),
            b"/grpc.health.v1.Health/Watch": streams.for_all(self._watch, "Watch"),
        }

    async def _check(self, bound: Bound, call: Call) -> None:
        try:
            status = self._statuses.get(_asked(first_of(call)).service)
            if status is None:
                call.finish(Status.NOT_FOUND, "service: there is none of that name")
            elif not call.answer_now(raw := _Answer(status=status).SerializeToString()):
                with bound.taken():  # until its caller reads
                    await call.answer(raw)
        except (QueueberError, Problem) as error:
            call.finish(*status_of(error))

    async def _watch(self, said: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        asked, told = _asked(await anext(said, b"")), None
        while True:
            changed = self._changed
            status = self._statuses.get(asked.service, _Answer.SERVICE_UNKNOWN)
            if status != told:
                yield _Answer(status=status).SerializeToString()
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


def _asked(raw: bytes) -> health_pb2.HealthCheckRequest:
    return parsed(health_pb2.HealthCheckRequest, raw)
