"""The callers of topics: what they do to a server, here one in memory."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path

import pytest

from bench.peers.order import Order
from bench.peers.peer import Server
from bench.topics import driver as driver_module
from bench.topics.driver import CREDITS, TopicDriver
from bench.topics.peer import Reader, Subscription, Topics


class Memory:
    """Topics in memory."""

    name = library = durability = notes = ""
    packages: Sequence[str] = ()

    def __init__(self) -> None:
        self.topics: dict[str, list[bytes]] = {}
        self.most_unacked = self.acked = self.readers = 0

    def version(self) -> str:
        return ""

    @contextlib.contextmanager
    def running(self, folder: Path) -> Iterator[Server]:
        yield Server("", list)

    @contextlib.asynccontextmanager
    async def connect(self, address: str, callers: int) -> AsyncIterator[Topics]:
        yield self

    async def create(self, names: Sequence[str]) -> None:
        self.topics |= {name: [] for name in names}

    async def delete(self, names: Sequence[str]) -> None:
        for name in names:
            del self.topics[name]

    async def publish(self, topic: str, messages: Sequence[bytes]) -> None:
        self.topics[topic].extend(messages)
        await asyncio.sleep(0.001)

    @contextlib.asynccontextmanager
    async def reader(self, topic: str) -> AsyncIterator[Reader]:
        self.readers += 1
        yield Consumer(self, topic, CREDITS)

    @contextlib.asynccontextmanager
    async def subscription(
        self, topic: str, group: str, credits: int
    ) -> AsyncIterator[Subscription]:
        yield Consumer(self, topic, credits)


class Consumer:
    def __init__(self, memory: Memory, topic: str, credits: int) -> None:
        self.memory = memory
        self.topic = topic
        self.credits = credits
        self.position = self.unacked = 0

    async def read(self, count: int) -> Sequence[bytes]:
        await asyncio.sleep(0.001)
        messages = self.memory.topics[self.topic][self.position : self.position + count]
        self.position += len(messages)
        return messages

    async def receive(self) -> Sequence[bytes]:
        messages = await self.read(self.credits - self.unacked)
        self.unacked += len(messages)
        self.memory.most_unacked = max(self.memory.most_unacked, self.unacked)
        return messages

    async def ack(self, count: int) -> None:
        self.unacked -= count
        self.memory.acked += count


@pytest.fixture
def memory() -> Memory:
    return Memory()


@pytest.fixture
def driver(memory: Memory) -> TopicDriver:
    return TopicDriver(memory, "")


def test_topics_are_created_and_deleted_one_or_many(memory: Memory, driver: TopicDriver) -> None:
    driver.run(Order("create", "one", 10))
    driver.run(Order("create", "many", 10, count=3))

    assert memory.topics == {"one": [], "many.0": [], "many.1": [], "many.2": []}

    driver.run(Order("delete", "many", 10, count=3))
    driver.run(Order("delete", "one", 10))

    assert memory.topics == {}


def test_publishing_goes_on_until_its_time_is_over(memory: Memory, driver: TopicDriver) -> None:
    driver.run(Order("create", "t", 10))

    tally = driver.run(Order("publish", "t", 10, items=3, callers=4, seconds=0.2))

    # Each topic gets an uncounted call first.
    assert tally.items == len(memory.topics["t"]) - 3 > 0
    assert len(tally.samples_ns) == tally.items / 3
    assert {len(each) for each in memory.topics["t"]} == {10}


def test_many_topics_are_chosen_by_chance_after_each_got_one(
    memory: Memory, driver: TopicDriver
) -> None:
    driver.run(Order("create", "t", 10, count=5))

    tally = driver.run(Order("publish", "t", 10, callers=4, seconds=0.2, count=5))

    published = [len(messages) for messages in memory.topics.values()]
    assert min(published) > 1
    assert sum(published) == tally.items + 5  # the first ones are not counted


def test_readers_read_it_all_and_what_a_first_call_brings_is_not_counted(
    memory: Memory, driver: TopicDriver
) -> None:
    memory.topics["t"] = [b"m"] * 100

    tally = driver.run(Order("read", "t", 10, items=30, seconds=0.1, count=100))

    assert memory.readers > 1
    assert tally.items == 70 * memory.readers
    assert 0 < tally.ended_ns - tally.started_ns < 10**9


def test_pushed_messages_are_acknowledged(memory: Memory, driver: TopicDriver) -> None:
    memory.topics["t"] = [b"m"] * 2500

    tally = driver.run(Order("push", "t", 10, seconds=0.01, count=2500))

    passes = tally.items // 1500
    assert tally.items == 1500 * passes > 0
    assert memory.acked == 2500 * passes
    assert memory.most_unacked == CREDITS


def test_messages_that_are_missing_end_the_measurement(
    memory: Memory, driver: TopicDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driver_module, "_PATIENCE_SECONDS", 0.05)
    memory.topics["t"] = [b"m"] * 100

    with pytest.raises(RuntimeError, match=r"^5 of 105 messages of t are missing$"):
        driver.run(Order("read", "t", 10, items=30, seconds=1, count=105))


def test_latency_is_that_of_each_message_at_an_even_rate(
    memory: Memory, driver: TopicDriver
) -> None:
    memory.topics["t"] = []

    tally = driver.run(Order("latency", "t", 10, callers=4, seconds=0.3, count=200))

    assert 40 <= tally.items == len(tally.samples_ns) <= 70
    assert all(0 < each < 10**9 for each in tally.samples_ns)
    assert memory.acked == tally.items + 1  # one shows that the consumer is there


def test_a_slow_consumer_takes_a_message_at_a_time(
    memory: Memory, driver: TopicDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driver_module, "_SLOW_SECONDS", 0.05)
    memory.topics["t"] = []

    tally = driver.run(Order("lag", "t", 10, items=10, callers=4, seconds=0.3))

    # One message shows that the consumer is there, and an uncounted call that the topic is.
    assert tally.items == len(memory.topics["t"]) - 11
    assert 1 < memory.acked <= 8
