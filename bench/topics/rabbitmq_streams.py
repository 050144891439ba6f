"""RabbitMQ streams: the plugin with its own protocol, in which the server pushes whole chunks."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Mapping, Sequence

from rstream import Consumer, ConsumerOffsetSpecification, OffsetType, Producer
from rstream.producer import ConfirmationStatus

from bench.peers.processes import LOOPBACK
from bench.peers.rabbitmq import RabbitServer
from bench.topics.arrivals import Arrivals
from bench.topics.peer import Reader, Subscription, Topics

_USER = "guest"
_TOPICS_MAX = 100
"""Topics of one producer: it knows its topics on a connection by a number of at most 199."""
_READ_AHEAD = 2000
"""Messages that a reader has at most before it takes no more chunks."""
_STORE_MESSAGES = 10_000
"""Messages from one stored offset to the next; other clients of RabbitMQ have this default."""

Arrived = tuple[int, bytes]
"""A message after its offset."""


class RabbitMQStreams(RabbitServer):
    name = "RabbitMQ streams"
    durability = "no: never, left to the system"
    notes = (
        "confirms come before a sync; every read is a push, in chunks as they were written; "
        "an offset is stored every 10,000 messages"
    )
    library = "rstream"
    plugins = ("rabbitmq_stream",)

    def settings(self, port: int) -> Mapping[str, str]:
        return {
            "listeners.tcp": "none",
            "stream.listeners.tcp.1": f"{LOOPBACK}:{port}",
            # Where clients are sent to, which would be this machine's name.
            "stream.advertised_host": LOOPBACK,
            "stream.advertised_port": str(port),
        }

    @contextlib.asynccontextmanager
    async def connect(self, address: str, callers: int) -> AsyncIterator[Topics]:
        async with contextlib.AsyncExitStack() as stack:
            yield _Topics(int(address), stack)


class _Topics:
    def __init__(self, port: int, stack: contextlib.AsyncExitStack) -> None:
        self._port = port
        self._stack = stack
        self._producers: dict[str, Producer] = {}
        self._starting = asyncio.Lock()

    async def create(self, names: Sequence[str]) -> None:
        # Not with the producer's own method, which connects anew for each.
        async with _producer(self._port) as producer:
            client = await producer.default_client
            for name in names:
                await client.create_stream(name)

    async def delete(self, names: Sequence[str]) -> None:
        async with _producer(self._port) as producer:
            client = await producer.default_client
            for name in names:
                await client.delete_stream(name)

    async def publish(self, topic: str, messages: Sequence[bytes]) -> None:
        producer = self._producers.get(topic) or await self._producer_of(topic)
        if len(messages) == 1:
            await producer.send_wait(topic, messages[0], timeout=None)
            return
        confirmed = asyncio.get_running_loop().create_future()
        left = len(messages)

        def confirm(status: ConfirmationStatus) -> None:
            nonlocal left
            left -= 1
            if not status.is_confirmed and not confirmed.done():
                confirmed.set_exception(RuntimeError(f"{topic} refused a message: {status}"))
            elif not left and not confirmed.done():
                confirmed.set_result(None)

        await producer.send_batch(topic, messages, on_publish_confirm=confirm)
        await confirmed

    async def _producer_of(self, topic: str) -> Producer:
        async with self._starting:
            if topic not in self._producers:
                topics = len(self._producers)
                self._producers[topic] = (
                    await self._stack.enter_async_context(_producer(self._port))
                    if topics % _TOPICS_MAX == 0
                    else list(self._producers.values())[-1]
                )
            return self._producers[topic]

    @contextlib.asynccontextmanager
    async def reader(self, topic: str) -> AsyncIterator[Reader]:
        async with _consumer(self._port, topic, "", _READ_AHEAD) as (_, arrivals):
            yield _Reader(arrivals)

    @contextlib.asynccontextmanager
    async def subscription(
        self, topic: str, group: str, credits: int
    ) -> AsyncIterator[Subscription]:
        async with _consumer(self._port, topic, group, credits) as (consumer, arrivals):
            yield _Subscription(consumer, arrivals, topic, group, credits)


class _Reader:
    def __init__(self, arrivals: Arrivals[Arrived]) -> None:
        self._arrivals = arrivals

    async def read(self, count: int) -> Sequence[bytes]:
        return [message for _, message in await self._arrivals.take(count)]


class _Subscription:
    def __init__(
        self, consumer: Consumer, arrivals: Arrivals[Arrived], topic: str, group: str, credits: int
    ) -> None:
        self._consumer = consumer
        self._arrivals = arrivals
        self._topic = topic
        self._group = group
        self._credits = credits
        self._unacked: list[int] = []
        self._unstored = 0

    async def receive(self) -> Sequence[bytes]:
        arrived = await self._arrivals.take(self._credits)
        self._unacked += [offset for offset, _ in arrived]
        return [message for _, message in arrived]

    async def ack(self, count: int) -> None:
        """Store an offset now and then, as its users do: each goes into the stream as a message."""
        offset = self._unacked[count - 1]
        del self._unacked[:count]
        self._unstored += count
        if self._unstored >= _STORE_MESSAGES:
            self._unstored = 0
            await self._consumer.store_offset(self._topic, self._group, offset)


def _producer(port: int) -> Producer:
    return Producer(LOOPBACK, port, username=_USER, password=_USER)


@contextlib.asynccontextmanager
async def _consumer(
    port: int, topic: str, group: str, most: int
) -> AsyncIterator[tuple[Consumer, Arrivals[Arrived]]]:
    """The client asks for a chunk for each that was handled; the handler waits if `most` messages
    have not been taken."""
    arrivals: Arrivals[Arrived] = Arrivals()

    def arrive(message: bytes, context: object) -> Awaitable[None] | None:
        arrivals.put((context.offset, message))  # type: ignore[attr-defined]
        return arrivals.wait_for_room(most) if len(arrivals) >= most else None

    async with Consumer(LOOPBACK, port, username=_USER, password=_USER) as consumer:
        await consumer.subscribe(
            topic,
            arrive,
            subscriber_name=group or None,
            offset_specification=ConsumerOffsetSpecification(OffsetType.FIRST, None),
        )
        yield consumer, arrivals
