"""The open streams of one process: how many there may be, and how each of them ends."""

import asyncio
from collections.abc import Callable
from typing import Any

import grpc

from queueber.errors import InvalidArgument, QueueberError, Unavailable
from queueber.gateway.bounds import STOPPING, Bound
from queueber.gateway.grpc import sluice_pb2 as wire
from queueber.gateway.grpc.calls import Calls, Context, caller_of, parsed, refuse
from queueber.gateway.grpc.known_calls import reset_call
from queueber.gateway.grpc.statuses import OUR_FAULT, status_of
from queueber.gateway.grpc.subscribe import Stream
from queueber.gateway.log import log
from queueber.gateway.problems import Problem

METHOD = "Subscribe"
_TELL_SECONDS = 1.0
"""How long a caller whose stream the gateway ends may take to hear why."""


class Streams:
    def __init__(self, calls: Calls, bound: Bound) -> None:
        self._calls = calls
        self.bound = bound
        self._open: set[Stream] = set()
        self._is_stopping = False

    def handler(self) -> "grpc.RpcMethodHandler[Any, Any]":
        return grpc.stream_stream_rpc_method_handler(self._subscribe)

    async def _subscribe(self, _: object, context: Context) -> None:
        calls, settings = self._calls, self._calls.settings
        status, text, seconds = grpc.StatusCode.OK, "", settings.answer_timeout_ms / 1000
        stream = Stream(context, calls.bounds, calls.measures, settings.grpc_heartbeat_ms)
        try:
            with self.bound.taken():
                self._open.add(stream)
                if self._is_stopping:
                    raise Unavailable(STOPPING)
                init = _init_of(await calls.receiving.first(context, grpc.aio.EOF))
                async with calls.pool.client_for(caller_of(context)) as client:
                    await stream.run(client, init)
        except (QueueberError, Problem) as error:
            status, text = status_of(error)
        except asyncio.CancelledError:
            status = grpc.StatusCode.CANCELLED
            if stream.error is None or stream.is_cut:
                calls.bounds.unread.forget(stream)
                if stream.is_cut:
                    reset_call()
                raise
            status, text = status_of(stream.error)
            seconds = _TELL_SECONDS
        except Exception as error:  # noqa: BLE001  one stream fails, and the log says why
            status, text = grpc.StatusCode.INTERNAL, OUR_FAULT
            log.error("request_failed", path=METHOD, exc_info=error)
        finally:
            self._open.discard(stream)
            calls.measures.stream_ended(METHOD, status)
        try:
            if status is not grpc.StatusCode.OK:
                await refuse(context, status, text, seconds)
        finally:
            # What it was sent and has not read counts until now.
            calls.bounds.unread.forget(stream)

    def stop(self) -> None:
        """The gateway stops: end all streams, and begin no others."""
        self._is_stopping = True
        for stream in list(self._open):
            stream.end(Unavailable(STOPPING))

    def counted(self, handle: Callable[..., Any]) -> Callable[..., Any]:
        """Another handler that answers with a stream, which counts as one of those open."""

        async def counted(request: object, context: Context) -> Any:
            try:
                self.bound.take()
            except Problem as error:
                await refuse(context, *status_of(error))
            try:
                async for each in handle(request, context):
                    yield each
            finally:
                self.bound.give_back()

        return counted


def _init_of(raw: bytes) -> wire.SubscriptionInit:
    message = parsed(wire.SubscribeUpstream, raw)
    if message.WhichOneof("request") != "init":
        raise InvalidArgument("init: the first message of a stream must be one")
    return message.init
