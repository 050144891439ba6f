"""Calls that the gateway itself ends while their handlers run: nothing of them is left."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Coroutine
from dataclasses import dataclass
from typing import Any, cast

import pytest
from prometheus_client import CollectorRegistry

import queueber
from faults.grpc.said import CREDITS, init
from queueber.gateway.app import Gateway
from queueber.gateway.bounds import Bound, Bounds
from queueber.gateway.clients import ClientPool
from queueber.gateway.grpc.calls import Calls
from queueber.gateway.grpc.health import Health
from queueber.gateway.grpc.http2.call import Call
from queueber.gateway.grpc.http2.frames import (
    CANCEL,
    DATA,
    END_STREAM,
    INITIAL_WINDOW_SIZE,
    NO_ERROR,
    RST_STREAM,
    frame,
    reset,
    settings,
    window_update,
)
from queueber.gateway.grpc.http2.messages import prefix
from queueber.gateway.grpc.measures import GrpcMeasures
from queueber.gateway.grpc.statuses import Status
from queueber.gateway.grpc.streams import Streams
from queueber.gateway.settings import GatewaySettings
from queueber.limits import GRPC_OPEN_STREAMS_MAX
from queueber.testing import ServerProcess
from tests.gateway.grpc.http2.peer import Frames, Peer, message

_SECONDS = 10.0
_BODIES_BYTES_MAX = 1000


@dataclass
class Rig:
    streams: Streams
    peer: Peer

    async def until(self, is_so: Callable[[], bool]) -> None:
        async with asyncio.timeout(_SECONDS):
            while not is_so():
                await self.peer.heard()
                await asyncio.sleep(0.001)


@contextlib.asynccontextmanager
async def rig(server: ServerProcess) -> AsyncIterator[Rig]:
    settings = GatewaySettings(server=server.address)
    bounds = Bounds(requests_max=10, waits_max=1, bodies_bytes_max=1, answers_bytes_max=1 << 20)
    pool, bound = ClientPool(settings), Bound("streams", 2)
    streams = Streams(
        Calls(settings, pool, bounds, GrpcMeasures(CollectorRegistry(), bound)), bound
    )
    try:
        yield Rig(streams, Peer(streams.subscribe, bodies=_BODIES_BYTES_MAX))
    finally:
        await pool.aclose()


def run(server: ServerProcess, test: Callable[[Rig], Coroutine[Any, Any, None]]) -> None:
    async def with_rig() -> None:
        async with rig(server) as made:
            await test(made)

    asyncio.run(with_rig())


def status_of(peer: Peer, heard: Frames) -> str:
    """The status in the only head that was sent."""
    (block,) = [each[3] for each in heard if each[0] == 1]
    return peer.fields(block)["grpc-status"]


REFUSED: dict[str, tuple[list[bytes], Status]] = {
    "compressed": ([frame(DATA, 0, 1, b"\1\0\0\0\1x")], Status.UNIMPLEMENTED),
    "large": ([frame(DATA, 0, 1, prefix((1 << 20) + 1))], Status.RESOURCE_EXHAUSTED),
    "no room": ([message(1, bytes(_BODIES_BYTES_MAX))], Status.UNAVAILABLE),
    "no end": ([frame(DATA, END_STREAM, 1, prefix(9) + b"x")], Status.INTERNAL),
    # The first of them waits to be read; the second comes in the same turn.
    "after others": (
        [message(1, b"\x12\x02\x08\x01"), frame(DATA, 0, 1, b"\1\0\0\0\1x")],
        Status.UNIMPLEMENTED,
    ),
}


@pytest.mark.parametrize(("later", "status"), REFUSED.values(), ids=REFUSED)
def test_a_stream_whose_later_message_is_refused_leaves_nothing(
    server: ServerProcess, client: queueber.Client, topic: str, later: list[bytes], status: Status
) -> None:
    client.create_topic(topic)

    def consumers() -> list[str]:
        return [name for each in client.topic(topic).groups() for name in each.consumers]

    async def test(of: Rig) -> None:
        peer, streams = of.peer, of.streams
        await peer.greet()
        await peer.say(peer.head(1), message(1, init(topic, "g")), message(1, CREDITS))
        await of.until(lambda: len(consumers()) == 1)
        assert streams.bound.used == 1

        heard = await peer.say(*later)
        assert status_of(peer, heard) == str(status.value)
        await of.until(lambda: streams.bound.used == 0 and not consumers())
        assert (peer.shared.bodies.used, peer.connection.calls.open) == (0, {})
        # What else is on its way is passed over.
        if status is not Status.INTERNAL:
            assert heard[-1] == (RST_STREAM, 0, 1, NO_ERROR.to_bytes(4))
            assert await peer.say(message(1, b"m", is_last=True)) == []

    run(server, test)


def test_what_a_handler_reads_last_is_given_back_once_and_it_reads_no_more() -> None:
    async def test() -> None:
        read: list[bytes | None] = []

        async def shielded(call: Call) -> None:
            """A handler that is at work, and goes on for a moment."""
            read.append(await call.read())
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.get_running_loop().create_future()
            read.append(await call.read())

        peer = Peer(shielded)
        await peer.greet()
        await peer.say(peer.head(1), message(1, b"first"))
        await peer.say(frame(DATA, 0, 1, b"\1\0\0\0\1x"))
        assert read == [b"first", None]
        assert peer.shared.bodies.used == 0

    asyncio.run(test())


def test_streams_that_need_no_credential_take_no_place_of_those_that_subscribe(
    server: ServerProcess,
) -> None:
    async def test(of: Rig) -> None:
        async def waits(_: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
            yield await asyncio.get_running_loop().create_future()

        handler = of.streams.for_all(waits, "Watch")
        peers = [Peer(handler), Peer(handler)]
        for peer in peers:
            await peer.greet()
            for at in range(GRPC_OPEN_STREAMS_MAX // 2):
                await peer.say(peer.head(2 * at + 1), message(2 * at + 1, b""))
        assert of.streams.without_credential.used == GRPC_OPEN_STREAMS_MAX
        assert of.streams.bound.used == 0

        heard = await peers[0].say(peers[0].head(201), message(201, b""))
        assert status_of(peers[0], heard) == str(Status.UNAVAILABLE.value)
        await peers[0].say(reset(1, CANCEL))
        assert of.streams.without_credential.used == GRPC_OPEN_STREAMS_MAX - 1

    run(server, test)


def test_an_answer_about_health_that_nobody_reads_is_one_of_these_streams(
    server: ServerProcess,
) -> None:
    async def test(of: Rig) -> None:
        handlers = Health(cast(Gateway, None), "sluice.v1.Sluice").handlers(of.streams)
        peer, bound = Peer(handlers[b"/grpc.health.v1.Health/Check"]), of.streams.without_credential
        await peer.greet({INITIAL_WINDOW_SIZE: 0})
        await peer.say(peer.head(1), message(1, b"", is_last=True))
        assert bound.used == 1
        bound.take(GRPC_OPEN_STREAMS_MAX - 1)
        heard = await peer.say(peer.head(3), message(3, b"", is_last=True))
        assert status_of(peer, heard) == str(Status.UNAVAILABLE.value)
        await peer.say(window_update(1, 100))
        assert (bound.used, peer.connection.calls.open) == (GRPC_OPEN_STREAMS_MAX - 1, {})
        # One that is read at once is answered all the same.
        await peer.say(settings({INITIAL_WINDOW_SIZE: 100}))
        heard = await peer.say(peer.head(5), message(5, b"", is_last=True))
        assert peer.fields(heard[-1][3])["grpc-status"] == "0"

    run(server, test)


def test_a_stream_that_may_be_open_for_some_time_ends_after_it(server: ServerProcess) -> None:
    async def test(of: Rig) -> None:
        async def says(_: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
            while True:
                yield b"more than its caller takes"

        peer = Peer(of.streams.for_all(says, "ServerReflectionInfo", 0.01))
        await peer.greet({INITIAL_WINDOW_SIZE: 40})
        await peer.say(peer.head(1), message(1, b""))
        await of.until(lambda: not peer.connection.calls.open)
        assert of.streams.without_credential.used == 0

    run(server, test)
