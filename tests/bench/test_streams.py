"""The generator gets from each server what it appended; a benchmark of one that loses is none.

Servers that npm and cargo install are tested where `make bench` has installed them.
"""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.peers.order import Order
from bench.peers.peer import Program
from bench.peers.processes import process_ids
from bench.streams import servers
from bench.streams.driver import StreamDriver
from bench.streams.programs import is_here
from bench.streams.registry import PEERS

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]

_FOLDERS = {
    "node": servers.NODE_FOLDER,
    "prisma": servers.PRISMA_FOLDER,
    "rust": servers.RUST_FOLDER,
}
_SECONDS = 0.2


@pytest.fixture(params=PEERS)
def peer(request: pytest.FixtureRequest) -> Program:
    if request.param in _FOLDERS and not is_here(_FOLDERS[request.param]):
        pytest.skip(f"{request.param} is not installed")
    return PEERS[request.param]


@pytest.fixture
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as path:
        yield Path(path)


def test_every_order_is_executed_and_the_server_is_gone_afterwards(
    peer: Program, folder: Path
) -> None:
    with peer.running(folder) as server:
        driver = StreamDriver(peer, server.address)
        _append(driver)
        _read(driver)
        _fan_out(driver)
        processes = server.process_ids()
        assert processes

    assert not [each for each in processes if each in process_ids(each)]
    assert not list(folder.iterdir())


def _append(driver: StreamDriver) -> None:
    for order in (
        Order("append", "one", 1024, callers=4, seconds=_SECONDS),
        Order("append", "some", 1024, callers=4, seconds=_SECONDS, count=2),
        Order("append", "values", 1024, items=10, callers=2, seconds=_SECONDS),
        Order("create many", "created", 0, callers=4, seconds=_SECONDS),
    ):
        if order.work == "append":
            kind = "json" if order.items > 1 else "bytes"
            driver.run(Order(f"create {kind}", order.name, 0, count=order.count))
        tally = driver.run(order)
        assert tally.items >= order.callers * order.items
        assert len(tally.samples_ns) * order.items == tally.items
        if order.work == "append":
            driver.run(Order("delete", order.name, 0, count=order.count))


def _read(driver: StreamDriver) -> None:
    for kind, items in (("bytes", 1), ("json", 16)):
        size = 100_000 // items
        driver.run(Order(f"create {kind}", kind, 0))
        driver.run(Order("fill", kind, size, items=items, count=4))

        tally = driver.run(Order("read", kind, 0, callers=2, seconds=_SECONDS, count=400_000))

        assert tally.items >= 2 * 400_000
        with pytest.raises(RuntimeError, match="were appended"):
            driver.run(Order("read", kind, 0, seconds=_SECONDS, count=500_000))


def _fan_out(driver: StreamDriver) -> None:
    for number, order in enumerate(
        (
            Order("fan-out", "fan-0", 100, items=2, callers=20, seconds=_SECONDS),
            Order("fan-out", "fan-1", 100, callers=20, seconds=_SECONDS, count=20),
        )
    ):
        driver.run(Order("create text", f"fan-{number}", 0))
        tally = driver.run(order)
        assert tally.items
        assert tally.items % order.callers == 0
        assert len(tally.samples_ns) == tally.items
        assert min(tally.samples_ns) > 0
