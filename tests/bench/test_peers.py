"""Each peer hands out what it was given, once; a benchmark of one that loses items is none.

They run where their servers and clients are installed or built, which `make bench` does.
"""

import asyncio
import tempfile
import threading
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from bench.debian import is_installed
from bench.peers.peer import Client, Peer
from bench.peers.processes import process_ids

registry = pytest.importorskip("bench.peers.registry", reason="the clients are not installed")
nats_jetstream = pytest.importorskip("bench.peers.nats_jetstream")

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]

_CALLERS = 4
_BATCH = 30

Call = Callable[[Client, int], Awaitable[list[bytes]]]


@pytest.fixture(params=registry.PEERS)
def peer(request: pytest.FixtureRequest) -> Peer:
    found: Peer = registry.PEERS[request.param]
    missing = [package for package in found.packages if not is_installed(package)]
    if missing:
        pytest.skip(f"{', '.join(missing)} is not installed")
    if request.param == "nats-synced" and not nats_jetstream.is_synced_one_built():
        pytest.skip("a NATS that syncs is not built")
    return found


@pytest.fixture
def folder() -> Iterator[Path]:
    """Not pytest's, which is closed to the user that runs PostgreSQL when root may not."""
    with tempfile.TemporaryDirectory() as path:
        yield Path(path)


def test_items_arrive_once_and_the_server_is_gone_afterwards(peer: Peer, folder: Path) -> None:
    with peer.running(folder) as server:
        added = _call(peer, server.address, _add)
        asyncio.run(peer.fill(server.address, "queue", b"filled", 1000))
        taken = _call(peer, server.address, _taker(len(added) + 1000))

        assert Counter(taken) == Counter(added) + Counter({b"filled": 1000})
        processes = server.process_ids()
        assert processes

    assert not [each for each in processes if each in process_ids(each)]
    assert not list(folder.iterdir())


def _call(peer: Peer, address: str, call: Call) -> list[bytes]:
    """What the callers bring; a blocking one has a thread of its own."""
    brought: list[list[bytes]] = []

    async def callers(numbers: range) -> None:
        async with peer.connect(address, len(numbers), "queue") as clients:
            calls = [call(client, number) for client, number in zip(clients, numbers, strict=True)]
            brought.extend(await asyncio.gather(*calls))

    if peer.is_blocking:
        threads = [
            threading.Thread(target=lambda n=n: asyncio.run(callers(range(n, n + 1))))
            for n in range(_CALLERS)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    else:
        asyncio.run(callers(range(_CALLERS)))
    return [contents for each in brought for contents in each]


async def _add(client: Client, caller: int) -> list[bytes]:
    one = [b"one of %d\r\n\0\xff" % caller]
    many = [b"%d of %d" % (number, caller) for number in range(_BATCH)]
    await client.add(one)
    await client.add(many)
    return one + many


def _taker(count: int) -> Call:
    """Takes until all callers together have that many, or for a while after the last."""
    total = 0

    async def take(client: Client, _: int) -> list[bytes]:
        nonlocal total
        contents: list[bytes] = []
        fruitless = 0
        while total < count and fruitless < 20:
            taken = await client.take(_BATCH)
            assert len(taken.contents) <= _BATCH
            if taken.contents:
                await client.ack(taken)
            fruitless = 0 if taken.contents else fruitless + 1
            total += len(taken.contents)
            contents.extend(taken.contents)
        return contents

    return take
