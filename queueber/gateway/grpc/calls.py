"""Calls of one request and one answer: read, checked, counted, answered or refused."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeVar

from google.protobuf.message import DecodeError, Message

from queueber.client import AsyncClient
from queueber.errors import InvalidArgument, QueueberError
from queueber.gateway.bounds import Bounds
from queueber.gateway.clients import ClientPool
from queueber.gateway.credentials import credential_of
from queueber.gateway.grpc.http2.call import Call
from queueber.gateway.grpc.http2.shared import Handler
from queueber.gateway.grpc.measures import GrpcMeasures
from queueber.gateway.grpc.statuses import OUR_FAULT, Status, status_of
from queueber.gateway.log import log
from queueber.gateway.problems import Problem
from queueber.gateway.settings import GatewaySettings
from queueber.model import Credential

Request = TypeVar("Request", bound=Message)
Response = TypeVar("Response", bound=Message)

_AUTHORIZATION = b"authorization"
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

    def unary(
        self,
        name: str,
        kind: type[Request],
        handle: Callable[[AsyncClient, Request], Awaitable[Response]],
    ) -> Handler:
        """The handler of a call."""
        requests, pool, observe = self.bounds.requests, self.pool, self.measures.observe
        time = asyncio.get_running_loop().time

        async def answer(call: Call) -> None:
            begun, status, text = time(), Status.OK, ""
            try:
                with requests.taken():
                    request = parsed(kind, first_of(call))
                    async with pool.client_for(caller_of(call)) as client:
                        response = await handle(client, request)
                    await call.answer(response.SerializeToString())
            except BaseException as error:
                status, text = failed_with(error, name)
                if not isinstance(error, Exception):
                    raise
            finally:
                observe(name, status, time() - begun)
                call.finish(status, text)

        return answer


def failed_with(error: BaseException, name: str) -> tuple[Status, str]:
    """What a call ends with that failed; a fault of ours is logged."""
    if isinstance(error, QueueberError | Problem):
        return status_of(error)
    if not isinstance(error, Exception):
        # The call was cancelled, or the process ends: no fault of the request.
        return Status.CANCELLED, ""
    log.error("request_failed", path=name, exc_info=error)
    return Status.INTERNAL, OUR_FAULT


def first_of(call: Call) -> bytes:
    """The first message of a call, which is there when its handler begins."""
    raw = call.read_nowait()
    if raw is None:
        raise InvalidArgument("request: there is none; send one message")
    return raw


def parsed(kind: type[Request], raw: bytes) -> Request:
    try:
        return kind.FromString(raw)
    except DecodeError:
        raise InvalidArgument(f"request: it is no {kind.__name__} of sluice.v1") from None


def caller_of(call: Call) -> Credential | None:
    """The credential in the metadata of a call, under the rules of the HTTP door."""
    given = call.head.get(_AUTHORIZATION)
    return credential_of(_NO_HEADERS if given is None else {_AUTHORIZATION: given})
