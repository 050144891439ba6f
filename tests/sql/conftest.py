"""One server for the tests of a file; each test has names of its own."""

from collections.abc import Iterator
from itertools import count

import pytest

import queueber
from queueber.testing import ServerProcess, running_server

_numbers = count()


@pytest.fixture(scope="module")
def server() -> Iterator[ServerProcess]:
    with running_server() as running:
        yield running


@pytest.fixture(scope="module")
def client(server: ServerProcess) -> Iterator[queueber.Client]:
    with queueber.connect(server.address) as connected:
        yield connected


@pytest.fixture
def topic() -> str:
    """The name of a topic that no other test has."""
    return f"app.t{next(_numbers)}"
