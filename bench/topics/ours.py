"""Topics of Queueber with its defaults: the asyncio client, one connection for all callers."""

import contextlib
from collections import deque
from collections.abc import AsyncIterator, Sequence

from bench.peers.ours import QueueberServer
from bench.peers.peer import WAIT_SECONDS
from bench.topics.peer import Reader, Subscription, Topics
from queueber import AsyncClient, AsyncTopic, connect_async
from queueber.client.api.async_subscription import AsyncReceived, AsyncSubscription
from queueber.client.api.message import MessagePage


class QueueberTopics(QueueberServer):
    notes = (
        "its client reads ahead, up to 1,000 messages; an ordered group acknowledges up to an "
        "offset, and each acknowledgement is synced"
    )

    @contextlib.asynccontextmanager
    async def connect(self, address: str, callers: int) -> AsyncIterator[Topics]:
        async with connect_async(address) as client:
            yield _Topics(client)


class _Topics:
    def __init__(self, client: AsyncClient) -> None:
        self._client = client

    async def create(self, names: Sequence[str]) -> None:
        """The first message creates a topic."""

    async def delete(self, names: Sequence[str]) -> None:
        for name in names:
            await self._client.delete_topic(name)

    async def publish(self, topic: str, messages: Sequence[bytes]) -> None:
        await self._client.topic(topic).publish(messages)

    @contextlib.asynccontextmanager
    async def reader(self, topic: str) -> AsyncIterator[Reader]:
        yield _Reader(self._client.topic(topic))

    @contextlib.asynccontextmanager
    async def subscription(
        self, topic: str, group: str, credits: int
    ) -> AsyncIterator[Subscription]:
        subscription = self._client.topic(topic).subscribe(group=group, credits=credits)
        async with subscription:
            yield _Subscription(subscription)


class _Reader:
    def __init__(self, topic: AsyncTopic) -> None:
        self._topic = topic
        self._at = 0
        self._pages: AsyncIterator[MessagePage] | None = None

    async def read(self, count: int) -> Sequence[bytes]:
        if self._pages is None:
            self._pages = self._topic.pages(start=self._at, limit=count, wait=WAIT_SECONDS)
        page = await anext(self._pages, None)
        if page is None:
            self._pages = None
            return []
        self._at = page.next_offset
        return page.payloads


class _Subscription:
    def __init__(self, subscription: AsyncSubscription) -> None:
        self._subscription = subscription
        self._unacked: deque[AsyncReceived] = deque()

    async def receive(self) -> Sequence[bytes]:
        got = await self._subscription.batch(WAIT_SECONDS)
        self._unacked += got
        return [each.payload for each in got]

    async def ack(self, count: int) -> None:
        for _ in range(count - 1):
            self._unacked.popleft()
        self._unacked.popleft().ack_soon()
