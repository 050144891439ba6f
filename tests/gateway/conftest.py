"""One server and one gateway for all tests of the gateway; each test has a queue of its own.

Folders and files that need one to themselves have fixtures of their own, of both."""

from collections.abc import Iterator
from itertools import count

import pytest

from queueber.testing import ServerProcess, running_server
from tests.support.http import GatewayProcess, running_gateway

_numbers = count()


@pytest.fixture(scope="package")
def server() -> Iterator[ServerProcess]:
    with running_server() as running:
        yield running


@pytest.fixture(scope="package")
def gateway(server: ServerProcess) -> Iterator[GatewayProcess]:
    with running_gateway(server.address) as running:
        yield running


@pytest.fixture
def queue() -> str:
    """The path of a queue that no other test has."""
    return f"/v1/queues/q{next(_numbers)}"
