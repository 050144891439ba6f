"""Calls that are handed on: each ends once, in whatever way, and gives back what it took."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Coroutine
from dataclasses import dataclass
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

import queueber
from queueber.gateway.bounds import Bound, Bounds
from queueber.gateway.clients import ClientPool
from queueber.gateway.grpc import sluice_pb2 as wire
from queueber.gateway.grpc.calls import Calls
from queueber.gateway.grpc.handed_on import HandedOn
from queueber.gateway.grpc.http2.frames import (
    CANCEL,
    DATA,
    HEADERS,
    INITIAL_WINDOW_SIZE,
    reset,
    window_update,
)
from queueber.gateway.grpc.measures import GrpcMeasures
from queueber.gateway.grpc.publish import publish, publish_response
from queueber.gateway.settings import GatewaySettings
from queueber.testing import ServerProcess
from tests.gateway.grpc.http2.peer import Frames, Peer, message

_SECONDS = 10.0


@dataclass
class Rig:
    peer: Peer
    bounds: Bounds
    pool: ClientPool
    registry: CollectorRegistry

    async def heard_until(self, kind: int) -> Frames:
        """What the peer is sent, up to a frame of that kind."""
        found: Frames = []
        async with asyncio.timeout(_SECONDS):
            while not any(each[0] == kind for each in found):
                found += await self.peer.heard()
                await asyncio.sleep(0.001)
        return found

    async def under_way(self, count: int) -> None:
        """Wait until so many calls are."""
        async with asyncio.timeout(_SECONDS):
            for _ in iter(lambda: self.bounds.requests.used == count, True):
                await asyncio.sleep(0)

    async def settled(self) -> bool:
        """Whether nothing is under way any more."""
        await self.under_way(0)
        return not any(each.users for each in self.pool._entries.values())

    def counted(self) -> dict[str, float]:
        """Calls that have ended, by status."""
        return {
            sample.labels["status"]: sample.value
            for family in self.registry.collect()
            for sample in family.samples
            if sample.name.endswith("_grpc_calls_total")
        }


@contextlib.asynccontextmanager
async def rig(server: ServerProcess, *, requests_max: int = 10) -> AsyncIterator[Rig]:
    settings = GatewaySettings(server=server.address)
    bounds = Bounds(
        requests_max=requests_max, waits_max=1, bodies_bytes_max=1 << 20, answers_bytes_max=1 << 20
    )
    pool, registry = ClientPool(settings), CollectorRegistry()
    calls = Calls(settings, pool, bounds, GrpcMeasures(registry, Bound("streams", 1)))
    handler = HandedOn(calls, "Publish", wire.PublishRequest, publish, publish_response)
    try:
        yield Rig(Peer(handler), bounds, pool, registry)
    finally:
        await pool.aclose()


def run(
    server: ServerProcess, test: Callable[[Rig], Coroutine[Any, Any, None]], **options: int
) -> None:
    async def with_rig() -> None:
        async with rig(server, **options) as made:
            await test(made)

    asyncio.run(with_rig())


def body(topic: str, payload: bytes = b"hello") -> bytes:
    return wire.PublishRequest(topic=topic, payload=payload).SerializeToString()


async def connected(of: Rig, pairs: dict[int, int] | None = None) -> None:
    async with of.pool.client_for(None):
        pass
    await of.peer.greet(pairs)


def payloads(server: ServerProcess, topic: str) -> list[bytes]:
    with queueber.connect(server.address) as client:
        return list(client.topic(topic).read().payloads)


@pytest.mark.parametrize("is_connected", [True, False])
def test_a_call_is_answered_once_the_message_is_stored(
    server: ServerProcess, topic: str, is_connected: bool
) -> None:
    async def test(of: Rig) -> None:
        await (connected(of) if is_connected else of.peer.greet())
        of.peer.connection.data_received(of.peer.head(1) + message(1, body(topic), is_last=True))
        frames = await of.heard_until(DATA)
        assert [each[0] for each in frames] == [HEADERS, DATA, HEADERS]
        assert wire.PublishResponse.FromString(frames[1][3][5:]).sequence > 0
        assert of.peer.fields(frames[2][3]) == {"grpc-status": "0"}
        assert await of.settled()
        assert of.counted() == {"OK": 1}

    run(server, test)
    assert payloads(server, topic) == [b"hello"]


def test_an_answer_waits_for_a_window_and_counts_as_under_way_meanwhile(
    server: ServerProcess, topic: str
) -> None:
    async def test(of: Rig) -> None:
        await connected(of, {INITIAL_WINDOW_SIZE: 0})
        of.peer.connection.data_received(of.peer.head(1) + message(1, body(topic), is_last=True))
        assert [each[0] for each in await of.heard_until(HEADERS)] == [HEADERS]
        assert of.bounds.requests.used == 1

        of.peer.connection.data_received(window_update(1, 1000))
        assert [each[0] for each in await of.heard_until(HEADERS)] == [DATA, HEADERS]
        assert await of.settled()
        assert of.counted() == {"OK": 1}

    run(server, test)


@pytest.mark.parametrize("window", [0, 65_535])
def test_a_caller_that_goes_leaves_nothing_under_way(
    server: ServerProcess, topic: str, window: int
) -> None:
    async def test(of: Rig) -> None:
        await connected(of, {INITIAL_WINDOW_SIZE: window})
        of.peer.connection.data_received(of.peer.head(1) + message(1, body(topic), is_last=True))
        if not window:
            await of.heard_until(HEADERS)  # the answer has begun, and waits
        await of.under_way(1)
        of.peer.connection.data_received(reset(1, CANCEL))
        assert await of.settled()
        assert of.counted() == {"CANCELLED": 1}

    run(server, test)


def test_a_call_that_is_refused_at_once_gives_everything_back(
    server: ServerProcess, topic: str
) -> None:
    async def test(of: Rig) -> None:
        await connected(of)
        for stream, raw in ((1, body("no/name")), (3, b"\xff\xff"), (5, body(topic))):
            of.peer.connection.data_received(
                of.peer.head(stream) + message(stream, raw, is_last=True)
            )
        await of.heard_until(DATA)
        assert await of.settled()
        assert of.counted() == {"INVALID_ARGUMENT": 2, "OK": 1}

    run(server, test)
    assert payloads(server, topic) == [b"hello"]


def test_calls_above_the_bound_are_refused(server: ServerProcess, topic: str) -> None:
    async def test(of: Rig) -> None:
        await connected(of)
        said = [of.peer.head(n) + message(n, body(topic), is_last=True) for n in (1, 3, 5)]
        of.peer.connection.data_received(b"".join(said))
        await of.heard_until(DATA)
        assert await of.settled()
        assert of.counted() == {"OK": 2, "UNAVAILABLE": 1}

    run(server, test, requests_max=2)
    assert payloads(server, topic) == [b"hello"] * 2
