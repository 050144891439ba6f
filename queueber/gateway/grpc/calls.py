"""Calls of one request and one answer: read, checked, counted, answered or refused."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NoReturn, TypeVar

import grpc
from google.protobuf.message import DecodeError, Message

from queueber.client import AsyncClient
from queueber.errors import InvalidArgument, QueueberError
from queueber.gateway.bounds import Bounds
from queueber.gateway.clients import ClientPool
from queueber.gateway.credentials import credential_of
from queueber.gateway.grpc.known_calls import reset_call
from queueber.gateway.grpc.measures import GrpcMeasures
from queueber.gateway.grpc.receiving import Receiving
from queueber.gateway.grpc.statuses import OUR_FAULT, status_of
from queueber.gateway.log import log
from queueber.gateway.problems import Problem
from queueber.gateway.settings import GatewaySettings
from queueber.model import Credential

Request = TypeVar("Request", bound=Message)
Response = TypeVar("Response", bound=Message)
Context = Any
"""What gRPC gives for one call: it has no type of its own that says all of it."""

_NO_HEADERS: Mapping[bytes, bytes] = {}


class Calls:
    """What all calls of one process share."""

    def __init__(
        self, settings: GatewaySettings, pool: ClientPool, bounds: Bounds, measures: GrpcMeasures
    ) -> None:
        self.settings = settings
        self.pool = pool
        self.bounds = bounds
        self.measures = measures
        self.receiving = Receiving(settings.body_timeout_ms)

    def unary(
        self,
        name: str,
        kind: type[Request],
        handle: Callable[[AsyncClient, Request], Awaitable[Response]],
    ) -> "grpc.RpcMethodHandler[Any, Any]":
        """The handler of a call. To gRPC the request is a stream of one message, which is the same
        on the wire: it receives a message when it is told to, and not before."""

        async def answer(_: object, context: Context) -> bytes:
            loop = asyncio.get_running_loop()
            begun, status, text = loop.time(), grpc.StatusCode.OK, ""
            try:
                with self.bounds.requests.taken():
                    raw = await self.receiving.first(context, grpc.aio.EOF)
                    with self.bounds.bodies.taken(len(raw)):
                        request = parsed(kind, raw)
                        async with self.pool.client_for(caller_of(context)) as client:
                            return (await handle(client, request)).SerializeToString()
            except (QueueberError, Problem) as error:
                status, text = status_of(error)
            except Exception as error:  # noqa: BLE001  one call fails, and the log says why
                status, text = grpc.StatusCode.INTERNAL, OUR_FAULT
                log.error("request_failed", path=name, exc_info=error)
            except asyncio.CancelledError:
                status = grpc.StatusCode.CANCELLED
                raise
            finally:
                self.measures.observe(name, status, loop.time() - begun)
            await refuse(context, status, text)

        # Without (de)serializers: the bytes are counted, and a wrong message is the caller's fault.
        return grpc.stream_unary_rpc_method_handler(answer)


async def refuse(
    context: Context, status: grpc.StatusCode, text: str, seconds: float | None = None
) -> NoReturn:
    """End a call with a status. A caller that does not read is not told after so many seconds: its
    call is reset, and what it did not read is let go."""
    try:
        async with asyncio.timeout(seconds):
            await context.abort(status, text)
    except TimeoutError:
        reset_call()
        raise asyncio.CancelledError from None
    raise AssertionError("`abort` raises")


def parsed(kind: type[Request], raw: bytes) -> Request:
    try:
        return kind.FromString(raw)
    except DecodeError:
        raise InvalidArgument(f"request: it is no {kind.__name__} of sluice.v1") from None


def caller_of(context: Context) -> Credential | None:
    """The credential in the metadata of a call, under the rules of the HTTP door."""
    for name, value in context.invocation_metadata():
        if name == "authorization":
            return credential_of({b"authorization": value.encode("utf-8", "replace")})
    return credential_of(_NO_HEADERS)
