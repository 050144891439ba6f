"""What JSON may cost that is not what a route takes."""

import asyncio
import gc
import tracemalloc

import msgspec
import pytest
from starlette.types import Message

from queueber.gateway.app import Gateway
from queueber.gateway.bodies import decode_body
from queueber.gateway.calls import Call
from queueber.gateway.problems import Problem
from queueber.gateway.queues.items import PollRequest
from queueber.gateway.routes import NoQuery, Route, RouteTable
from queueber.gateway.settings import GatewaySettings
from queueber.limits import MIB


async def nothing(_: object) -> None:
    pass


ROUTE = Route("POST", "/", nothing, "", "", body=PollRequest)
JSON = "application/json"


def test_a_whole_number_may_be_written_as_a_fraction() -> None:
    decoded = decode_body(ROUTE, JSON, b'{"items_max": 5.0}')
    assert decoded == msgspec.convert({"items_max": 5}, PollRequest)


def test_many_small_values_in_a_wrong_body_take_no_memory_of_their_own() -> None:
    body = b'{"items_max": 5.5, "more": [' + b"[]," * (4 * MIB // 3) + b"[]]}"
    gc.collect()
    tracemalloc.start()
    try:
        with pytest.raises(Problem, match="items_max") as caught:
            decode_body(ROUTE, JSON, body)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert caught.value.status == 400
    assert peak < MIB


def test_a_body_counts_until_it_is_handled_or_waits() -> None:
    """Else a thousand requests that the server keeps waiting would hold 16 MiB each."""
    body, counted = b'{"items_max": 5' + b" " * 1000 + b"}", []

    async def handle(call: Call[NoQuery, PollRequest]) -> None:
        counted.append(call.bounds.bodies.used)
        await call.wait(asyncio.sleep(0))
        counted.append(call.bounds.bodies.used)

    async def receive() -> Message:
        if received:
            await asyncio.Event().wait()
        received.append(True)
        return {"type": "http.request", "body": body}

    async def send(message: Message) -> None:
        counted.append(gateway.bounds.bodies.used)

    async def run() -> None:
        await gateway(
            {
                "type": "http", "method": "POST", "raw_path": b"/x", "path": "/x",
                "query_string": b"",
                "headers": [
                    (b"content-length", b"%d" % len(body)), (b"content-type", JSON.encode()),
                ],
            },
            receive,
            send,
        )  # fmt: skip

    received: list[bool] = []
    route = Route("POST", "/x", handle, "", "", body=PollRequest, status=204, uses_client=False)
    gateway = Gateway(GatewaySettings(), RouteTable([route]))
    asyncio.run(run())
    assert counted == [len(body), 0, 0, 0]
    assert gateway.bounds.bodies.used == 0
