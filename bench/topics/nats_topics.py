"""NATS JetStream as topics: a stream for each, or one stream for topics that belong together.

Those are its subjects, which is how its users have thousands of them.
"""

import contextlib
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

from nats.aio.client import Client as Connection
from nats.aio.msg import Msg
from nats.js import JetStreamContext
from nats.js.api import AckPolicy, ConsumerConfig, StorageType, StreamConfig

from bench.peers.nats_jetstream import (
    SYNCED as SYNCED_QUEUE,
)
from bench.peers.nats_jetstream import (
    UNSYNCED as UNSYNCED_QUEUE,
)
from bench.peers.nats_jetstream import (
    NatsServer,
    connected,
    publish_batch,
    publish_each,
)
from bench.peers.peer import LEASE_SECONDS, WAIT_SECONDS
from bench.topics.arrivals import Arrivals
from bench.topics.peer import Reader, Subscription, Topics

_UNUSED_SECONDS_MAX = 60.0
"""After which the server forgets a reader."""


@dataclass
class NatsTopics(NatsServer):
    @contextlib.asynccontextmanager
    async def connect(self, address: str, callers: int) -> AsyncIterator[Topics]:
        async with connected(address) as connection:
            yield _Topics(connection, connection.jetstream(), is_synced=self.is_synced)


def _as_topics(server: NatsServer, notes: str) -> NatsTopics:
    return NatsTopics(
        server.name, server.durability, notes, server.packages, is_synced=server.is_synced
    )


_READS = "1,000 topics are subjects of one stream; acks are not answered"
UNSYNCED = _as_topics(UNSYNCED_QUEUE, f"survives a killed server, not a lost machine; {_READS}")
SYNCED = _as_topics(
    SYNCED_QUEUE, f"sync_interval: always; 100 in a call are an atomic batch; {_READS}"
)


def _stream_of(topic: str) -> str:
    return topic.partition(".")[0]


class _Topics:
    def __init__(
        self, connection: Connection, context: JetStreamContext, *, is_synced: bool
    ) -> None:
        self._connection = connection
        self._context = context
        self._is_synced = is_synced
        self._publish = publish_batch if is_synced else publish_each

    async def create(self, names: Sequence[str]) -> None:
        for stream in {_stream_of(name) for name in names}:
            await self._context.add_stream(
                StreamConfig(
                    name=stream,
                    subjects=[stream, f"{stream}.*"],
                    storage=StorageType.FILE,
                    allow_atomic=True if self._is_synced else None,  # older servers do not know it
                )
            )

    async def delete(self, names: Sequence[str]) -> None:
        for stream in {_stream_of(name) for name in names}:
            await self._context.delete_stream(stream)

    async def publish(self, topic: str, messages: Sequence[bytes]) -> None:
        await self._publish(self._context, self._connection, topic, messages)

    @contextlib.asynccontextmanager
    async def reader(self, topic: str) -> AsyncIterator[Reader]:
        stream = _stream_of(topic)
        consumer = await self._context.add_consumer(
            stream,
            ConsumerConfig(
                ack_policy=AckPolicy.NONE,
                filter_subject=topic,
                inactive_threshold=_UNUSED_SECONDS_MAX,
            ),
        )
        yield _Reader(await self._context.pull_subscribe_bind(consumer.name, stream=stream))
        await self._context.delete_consumer(stream, consumer.name)

    @contextlib.asynccontextmanager
    async def subscription(
        self, topic: str, group: str, credits: int
    ) -> AsyncIterator[Subscription]:
        arrivals: Arrivals[Msg] = Arrivals()

        async def arrive(message: Msg) -> None:
            arrivals.put(message)

        subscription = await self._context.subscribe(
            topic,
            stream=_stream_of(topic),
            durable=group,
            cb=arrive,
            manual_ack=True,
            config=ConsumerConfig(
                ack_policy=AckPolicy.ALL, ack_wait=LEASE_SECONDS, max_ack_pending=credits
            ),
        )
        yield _Subscription(arrivals, credits)
        await subscription.unsubscribe()


class _Reader:
    def __init__(self, subscription: JetStreamContext.PullSubscription) -> None:
        self._subscription = subscription

    async def read(self, count: int) -> Sequence[bytes]:
        try:
            messages = await self._subscription.fetch(count, timeout=WAIT_SECONDS)
        except TimeoutError:
            return []
        return [message.data for message in messages]


class _Subscription:
    def __init__(self, arrivals: Arrivals[Msg], credits: int) -> None:
        self._arrivals = arrivals
        self._credits = credits
        self._unacked: list[Msg] = []

    async def receive(self) -> Sequence[bytes]:
        messages = await self._arrivals.take(self._credits)
        self._unacked += messages
        return [message.data for message in messages]

    async def ack(self, count: int) -> None:
        """The last one is acknowledged, with all before it."""
        await self._unacked[count - 1].ack()
        del self._unacked[:count]
