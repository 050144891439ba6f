"""A server for the screens alone: what other tests leave behind would not fit on them."""

from collections.abc import Iterator

import pytest

import queueber
from queueber.testing import ServerProcess, running_server
from tests.cli.conftest import Cli


@pytest.fixture(scope="package")
def server() -> Iterator[ServerProcess]:
    with running_server() as started:
        yield started


@pytest.fixture(scope="package")
def cli(server: ServerProcess) -> Cli:
    return Cli(server.address)


@pytest.fixture(scope="package")
def client(server: ServerProcess) -> Iterator[queueber.Client]:
    with queueber.connect(server.address) as connected:
        yield connected
