"""One server and one set of engines for all tests of SELECT."""

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import queueber
from queueber.sql.select import Engines, SelectBounds, SelectResult, select
from queueber.testing import ServerProcess, running_server

Run = Callable[..., SelectResult]


@pytest.fixture(scope="package")
def server() -> Iterator[ServerProcess]:
    with running_server() as running:
        yield running


@pytest.fixture
def client(server: ServerProcess) -> Iterator[queueber.Client]:
    with queueber.connect(server.address, name="tests") as connected:
        yield connected


@pytest.fixture(scope="package")
def engines() -> Iterator[Engines]:
    made = Engines()
    yield made
    made.close()


@pytest.fixture(scope="package")
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    made = asyncio.new_event_loop()
    yield made
    made.close()


@pytest.fixture(scope="package")
def connected(
    server: ServerProcess, loop: asyncio.AbstractEventLoop
) -> Iterator[queueber.AsyncClient]:
    async def connect() -> queueber.AsyncClient:
        return await queueber.connect_async(server.address)

    made = loop.run_until_complete(connect())
    yield made
    loop.run_until_complete(made.aclose())


@pytest.fixture(scope="package")
def run(connected: queueber.AsyncClient, engines: Engines, loop: asyncio.AbstractEventLoop) -> Run:
    """Runs a SELECT; keyword arguments are bounds."""

    def run(text: str, *params: object, **bounds: Any) -> SelectResult:
        return loop.run_until_complete(
            select(connected, text, params, SelectBounds(**bounds), engines=engines)
        )

    return run
