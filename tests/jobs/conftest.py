"""One server for all tests of jobs; each test has an app with queues of its own."""

import itertools
from collections.abc import Iterator

import pytest

import queueber
from queueber.testing import ServerProcess, running_server

_numbers = itertools.count(1)


@pytest.fixture(scope="package")
def server() -> Iterator[ServerProcess]:
    with running_server() as running:
        yield running


@pytest.fixture
def app(server: ServerProcess) -> Iterator[queueber.App]:
    with queueber.App(server.address) as made:
        yield made


@pytest.fixture
def name(app: queueber.App) -> str:
    """Of a queue where what failed is a dead letter at once."""
    chosen = f"jobs-{next(_numbers)}"
    app.client.create_queue(chosen, attempts_max=1)
    return chosen


@pytest.fixture
def patient(app: queueber.App) -> str:
    """Of a queue whose items are tried twenty times, a minute apart."""
    chosen = f"jobs-{next(_numbers)}"
    app.client.create_queue(chosen, attempts_max=20, backoff=[60])
    return chosen
