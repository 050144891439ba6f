"""One server for all tests of the clients; each test has a queue of its own."""

import re
from collections.abc import Iterator

import pytest

import queueber
from queueber.testing import ServerProcess, running_server


@pytest.fixture(scope="session")
def server() -> Iterator[ServerProcess]:
    with running_server() as running:
        yield running


@pytest.fixture
def client(server: ServerProcess) -> Iterator[queueber.Client]:
    with queueber.connect(server.address) as connected:
        yield connected


@pytest.fixture
def queue(client: queueber.Client, request: pytest.FixtureRequest) -> queueber.Queue:
    return client.queue(re.sub(r"[^A-Za-z0-9]+", "-", request.node.name)[:128])


@pytest.fixture
def topic(client: queueber.Client, request: pytest.FixtureRequest) -> queueber.Topic:
    return client.topic(re.sub(r"[^A-Za-z0-9]+", "-", request.node.name)[:128])
