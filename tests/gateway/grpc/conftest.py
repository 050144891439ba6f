"""One gateway with gRPC for all tests of a file; each test has a topic of its own."""

import re
from collections.abc import Iterator

import pytest

import queueber
from queueber.testing import ServerProcess
from tests.support.grpc import Sluice, running_grpc


@pytest.fixture(scope="module")
def address(server: ServerProcess) -> Iterator[str]:
    with running_grpc(server.address) as (_, found):
        yield found


@pytest.fixture
def sluice(address: str) -> Iterator[Sluice]:
    with Sluice(address) as made:
        yield made


@pytest.fixture
def client(server: ServerProcess) -> Iterator[queueber.Client]:
    with queueber.connect(server.address) as connected:
        yield connected


@pytest.fixture
def topic(request: pytest.FixtureRequest) -> str:
    return re.sub(r"[^A-Za-z0-9]+", "-", request.node.name)[:200]
