"""Each peer hands out what was published, in order; a benchmark of one that loses messages is none.

They run where their servers and clients are installed, built or fetched, which `make bench` does.
"""

import asyncio
import tempfile
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path

import pytest

from bench.debian import is_installed
from bench.peers.processes import process_ids
from bench.topics import kafka_server
from bench.topics.peer import TopicPeer, Topics

registry = pytest.importorskip("bench.topics.registry", reason="the clients are not installed")
nats_jetstream = pytest.importorskip("bench.peers.nats_jetstream")

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]

_PUBLISHED = [b"one\r\n\0\xff", *(b"message %d" % number for number in range(250))]
_CREDITS = 100


@pytest.fixture(params=registry.PEERS)
def peer(request: pytest.FixtureRequest) -> TopicPeer:
    found: TopicPeer = registry.PEERS[request.param]
    missing = [package for package in found.packages if not is_installed(package)]
    if missing:
        pytest.skip(f"{', '.join(missing)} is not installed")
    if request.param == "nats-synced" and not nats_jetstream.is_synced_one_built():
        pytest.skip("a NATS that syncs is not built")
    if request.param.startswith("kafka") and not kafka_server.are_jars_here():
        pytest.skip("the jars of Kafka are not fetched")
    return found


@pytest.fixture
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as path:
        yield Path(path)


def test_messages_arrive_in_order_and_the_server_is_gone_afterwards(
    peer: TopicPeer, folder: Path
) -> None:
    with peer.running(folder) as server:
        asyncio.run(_use(peer, server.address))
        processes = server.process_ids()
        assert processes

    assert not [each for each in processes if each in process_ids(each)]
    assert not list(folder.iterdir())


async def _use(peer: TopicPeer, address: str) -> None:
    async with peer.connect(address, 4) as topics:
        await topics.create(["lone"])
        await topics.create(["many.0", "many.1"])
        await topics.publish("many.0", [b"other"])
        await topics.publish("many.1", [b"another"])
        await topics.publish("lone", _PUBLISHED[:1])
        await topics.publish("lone", _PUBLISHED[1:])

        assert await _read(topics, "lone", 30) == _PUBLISHED
        assert await _read(topics, "many.1", 1) == [b"another"]
        # A second reader and a second group begin at the start again.
        assert await _read(topics, "lone", 1000) == _PUBLISHED
        for group in ("first", "second"):
            assert await _receive(topics, "lone", group) == _PUBLISHED

        await topics.delete(["lone"])
        await topics.delete(["many.0", "many.1"])


async def _read(topics: Topics, topic: str, count: int) -> list[bytes]:
    async with topics.reader(topic) as reader:
        return await _until_there_is_no_more(lambda: reader.read(count), count)


async def _receive(topics: Topics, topic: str, group: str) -> list[bytes]:
    async with topics.subscription(topic, group, _CREDITS) as subscription:

        async def take() -> Sequence[bytes]:
            messages = await subscription.receive()
            if len(messages) > 1:  # acknowledge in two steps
                await subscription.ack(1)
                await subscription.ack(len(messages) - 1)
            elif messages:
                await subscription.ack(1)
            return messages

        return await _until_there_is_no_more(take, _CREDITS)


async def _until_there_is_no_more(
    take: Callable[[], Awaitable[Sequence[bytes]]], most: int
) -> list[bytes]:
    found: list[bytes] = []
    fruitless = 0
    while fruitless < (3 if found else 50):
        messages = await take()
        assert len(messages) <= most
        fruitless = 0 if messages else fruitless + 1
        found += messages
    return found
