"""Apache Kafka: topics of one partition, through confluent-kafka on an asyncio loop.

Its producer tells of deliveries in a thread of ours, which hands them to the loop. Its consumer
fetches ahead in threads of its own, so most reads find messages without waiting.
"""

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from bench.peers.peer import WAIT_SECONDS
from bench.topics.kafka_server import KafkaServer
from bench.topics.peer import Reader, Subscription, Topics

_ANSWER_SECONDS_MAX = 60.0
_ERRORS_ALONE = 3
"""The client's log, which else tells on standard error what it discards when it is closed."""


@dataclass
class Kafka(KafkaServer):
    @contextlib.asynccontextmanager
    async def connect(self, address: str, callers: int) -> AsyncIterator[Topics]:
        # Callers wait for their answers, so messages need not linger for more. With one request at
        # a time, those that come meanwhile make up the next: several times as fast when each waits.
        producer = Producer(
            {
                **_settings(address), "acks": "all", "linger.ms": 0,
                "max.in.flight.requests.per.connection": 1,
            }
        )  # fmt: skip
        is_over = threading.Event()

        def tell_deliveries() -> None:
            while not is_over.is_set():
                producer.poll(WAIT_SECONDS)

        teller = threading.Thread(target=tell_deliveries)
        teller.start()
        try:
            yield _Topics(address, producer)
        finally:
            is_over.set()
            await asyncio.to_thread(teller.join)


_NOTES = "acks=all; its client fetches ahead, without credits, and commits every 5 s"
SYNCED = Kafka(
    name="Apache Kafka, synced",
    durability="yes",
    notes=f"log.flush.interval.messages=1, which is not its default; {_NOTES}",
    is_synced=True,
)
UNSYNCED = Kafka(
    name="Apache Kafka",
    durability="no: left to the system",
    notes=f"survives a killed server, not a lost machine; {_NOTES}",
    is_synced=False,
)


class _Topics:
    def __init__(self, address: str, producer: Producer) -> None:
        self._address = address
        self._producer = producer

    async def create(self, names: Sequence[str]) -> None:
        admin = AdminClient(_settings(self._address))
        wanted = [NewTopic(name, num_partitions=1, replication_factor=1) for name in names]
        await _settled(admin.create_topics(wanted, operation_timeout=_ANSWER_SECONDS_MAX))

    async def delete(self, names: Sequence[str]) -> None:
        admin = AdminClient(_settings(self._address))
        await _settled(admin.delete_topics(list(names), operation_timeout=_ANSWER_SECONDS_MAX))

    async def publish(self, topic: str, messages: Sequence[bytes]) -> None:
        loop = asyncio.get_running_loop()
        delivered = loop.create_future()
        left = len(messages)

        def settle(error: KafkaError | None) -> None:
            if not delivered.done():
                if error is None:
                    delivered.set_result(None)
                else:
                    delivered.set_exception(RuntimeError(f"Kafka refused a message: {error}"))

        def on_delivery(error: KafkaError | None, _: object) -> None:
            nonlocal left
            left -= 1
            if error is not None or not left:
                loop.call_soon_threadsafe(settle, error)

        for message in messages:
            self._producer.produce(topic, message, on_delivery=on_delivery)
        await delivered

    @contextlib.asynccontextmanager
    async def reader(self, topic: str) -> AsyncIterator[Reader]:
        async with _consumer(self._address, topic, "reader", commits=False) as consumer:
            yield _Reader(consumer)

    @contextlib.asynccontextmanager
    async def subscription(
        self, topic: str, group: str, credits: int
    ) -> AsyncIterator[Subscription]:
        async with _consumer(self._address, topic, group, commits=True) as consumer:
            yield _Subscription(_Reader(consumer), credits)


class _Reader:
    def __init__(self, consumer: Consumer) -> None:
        self._consumer = consumer

    async def read(self, count: int) -> Sequence[bytes]:
        messages = self._consumer.consume(count, timeout=0)
        if not messages:
            # One, because it would wait for all of them.
            messages = await asyncio.to_thread(self._consumer.consume, 1, WAIT_SECONDS)
        for message in messages:
            if (error := message.error()) is not None:
                raise RuntimeError(f"Kafka refused a read: {error}")
        return [message.value() or b"" for message in messages]


class _Subscription:
    def __init__(self, reader: _Reader, credits: int) -> None:
        self._reader = reader
        self._credits = credits

    async def receive(self) -> Sequence[bytes]:
        return await self._reader.read(self._credits)

    async def ack(self, count: int) -> None:
        """What was received is committed every five seconds, as the client does by default."""


@contextlib.asynccontextmanager
async def _consumer(
    address: str, topic: str, group: str, *, commits: bool
) -> AsyncIterator[Consumer]:
    # Assigned, not subscribed: a group's only consumer need not wait for others to join.
    consumer = Consumer({**_settings(address), "group.id": group, "enable.auto.commit": commits})
    consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
    try:
        yield consumer
    finally:
        await asyncio.to_thread(consumer.close)


def _settings(address: str) -> dict[str, Any]:
    return {"bootstrap.servers": address, "log_level": _ERRORS_ALONE}


async def _settled(answers: dict[str, Any]) -> None:
    """Wait for the answers about all topics, which come on a thread."""
    async with asyncio.timeout(_ANSWER_SECONDS_MAX):
        await asyncio.gather(*(asyncio.wrap_future(each) for each in answers.values()))
