"""A gateway whose gRPC ends by itself ends, so that it is started again."""

import asyncio

import pytest

from queueber.errors import QueueberError
from queueber.gateway import server
from queueber.gateway.app import Gateway
from queueber.gateway.grpc.server import GrpcDoor
from queueber.gateway.settings import GatewaySettings
from queueber.sockets import address_of, hold_port, listen


async def _run_with_a_door_that_dies(monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    doors: list[GrpcDoor] = []
    is_started = asyncio.Event()

    class Door(GrpcDoor):
        async def start(self) -> None:
            await super().start()
            is_started.set()

    def make(app: Gateway) -> GrpcDoor:
        doors.append(Door(app))
        return doors[0]

    monkeypatch.setattr(server, "_grpc_door", make)
    settings = GatewaySettings(server="127.0.0.1:1", http="127.0.0.1:0", grpc=address)
    running = asyncio.ensure_future(
        server.run_gateway(settings, listen("127.0.0.1", 0), asyncio.Event())
    )
    await is_started.wait()
    doors[0]._tasks[0].cancel()
    async with asyncio.timeout(30):
        await running


def test_a_gateway_whose_grpc_has_died_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    with (
        hold_port("127.0.0.1", 0) as held,
        pytest.raises(QueueberError, match="gRPC has ended by itself"),
    ):
        asyncio.run(_run_with_a_door_that_dies(monkeypatch, address_of(held)))
