"""Redis Streams as topics: entries stay, readers use XREAD and consumers XREADGROUP."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from typing import Any

from redis.asyncio import Redis

from bench.peers.peer import WAIT_SECONDS
from bench.peers.redis_streams import FIELD, NEW, RedisServer, append, connected, create_group
from bench.topics.peer import Reader, Subscription, Topics

_WAIT_MS = round(WAIT_SECONDS * 1000)
_CONSUMER = "consumer"


class RedisTopics(RedisServer):
    notes = (
        "everything is held in memory; 100 in a call are a pipeline; a consumer asks with "
        "XREADGROUP, whose deliveries and acks are synced"
    )

    @contextlib.asynccontextmanager
    async def connect(self, address: str, callers: int) -> AsyncIterator[Topics]:
        async with connected(address, callers) as redis:
            yield _Topics(redis)


class _Topics:
    def __init__(self, redis: "Redis") -> None:
        self._redis = redis

    async def create(self, names: Sequence[str]) -> None:
        """The first entry creates a stream."""

    async def delete(self, names: Sequence[str]) -> None:
        await self._redis.unlink(*names)

    async def publish(self, topic: str, messages: Sequence[bytes]) -> None:
        await append(self._redis, topic, messages)

    @contextlib.asynccontextmanager
    async def reader(self, topic: str) -> AsyncIterator[Reader]:
        yield _Reader(self._redis, topic)

    @contextlib.asynccontextmanager
    async def subscription(
        self, topic: str, group: str, credits: int
    ) -> AsyncIterator[Subscription]:
        await create_group(self._redis, topic, group)
        yield _Subscription(self._redis, topic, group, credits)


class _Reader:
    def __init__(self, redis: "Redis", topic: str) -> None:
        self._redis = redis
        self._topic = topic
        self._last: bytes | str = "0"

    async def read(self, count: int) -> Sequence[bytes]:
        answer: Any = await self._redis.xread(
            {self._topic: self._last}, count=count, block=_WAIT_MS
        )
        entries = answer[0][1] if answer else []
        if entries:
            self._last = entries[-1][0]
        return [fields[FIELD] for _, fields in entries]


class _Subscription:
    def __init__(self, redis: "Redis", topic: str, group: str, credits: int) -> None:
        self._redis = redis
        self._topic = topic
        self._group = group
        self._credits = credits
        self._unacked: list[bytes] = []

    async def receive(self) -> Sequence[bytes]:
        count = self._credits - len(self._unacked)
        if count <= 0:
            await asyncio.sleep(WAIT_SECONDS)
            return []
        answer: Any = await self._redis.xreadgroup(
            self._group, _CONSUMER, {self._topic: NEW}, count=count, block=_WAIT_MS
        )
        entries = answer[0][1] if answer else []
        self._unacked += [entry for entry, _ in entries]
        return [fields[FIELD] for _, fields in entries]

    async def ack(self, count: int) -> None:
        acked, self._unacked = self._unacked[:count], self._unacked[count:]
        await self._redis.xack(self._topic, self._group, *acked)
