"""Fixtures of pytest, in every program that has Queueber installed. Loading it loads nothing more.

    def test_an_order_is_confirmed(queueber_client):
        queueber_client.queue("orders").add(b"17")

Each test has a server without queues or topics, whose clock it may move: `queueber_server.advance`.
One process serves many tests; see `queueber.testing.empty_servers`.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from queueber.client import Client
    from queueber.testing.empty_servers import EmptyServers
    from queueber.testing.server_process import ServerProcess


@pytest.fixture(scope="session")
def queueber_server_options() -> tuple[str, ...]:
    """Flags of `queueber serve` for the servers of tests; define your own in `conftest.py`."""
    return ()


@pytest.fixture(scope="session")
def _queueber_servers(queueber_server_options: tuple[str, ...]) -> "Iterator[EmptyServers]":
    from queueber.testing.empty_servers import EmptyServers

    with EmptyServers(queueber_server_options) as servers:
        yield servers


@pytest.fixture
def queueber_server(_queueber_servers: "EmptyServers") -> "Iterator[ServerProcess]":
    """A server with nothing in it. `address` is what clients, workers and apps connect to, and
    `advance(hours=3)` moves its clock."""
    with _queueber_servers.empty() as server:
        yield server


@pytest.fixture
def queueber_client(queueber_server: "ServerProcess") -> "Iterator[Client]":
    """A client of the test's server."""
    from queueber.client import connect

    with connect(queueber_server.address) as client:
        yield client
