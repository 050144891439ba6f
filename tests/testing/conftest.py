"""One server for the tests of moved time: each moves it from wherever it is."""

from collections.abc import Iterator

import pytest

import queueber
from queueber.testing import ServerProcess, running_server


@pytest.fixture(scope="package")
def moved() -> Iterator[ServerProcess]:
    with running_server("--durability", "os", movable_clock=True) as server:
        yield server


@pytest.fixture
def client(moved: ServerProcess) -> Iterator[queueber.Client]:
    with queueber.connect(moved.address) as connected:
        yield connected
