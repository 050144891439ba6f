"""The callers of topics, which execute orders and report their outcome."""

import asyncio
import contextlib
import itertools
import os
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence

from bench.measure import SECOND_NS
from bench.peers.order import Order, Tally
from bench.topics.peer import Subscription, TopicPeer, Topics

CREDITS = 1000
_STAMP_BYTES = 8
_SLOW_SECONDS = 1.0
"""How long the slow consumer takes for a message."""
_PATIENCE_SECONDS = 30.0
"""How long a consumer waits for a message that was published."""

Work = Callable[[Topics], Awaitable[None]]


class TopicDriver:
    """Its operations, with the count of their orders:

    - `create` and `delete` some topics: how many, if they are several.
    - `publish`: to how many topics, one of which each call chooses by chance; 0 for one topic.
    - `read`: how many messages. A reader reads them from the start, and then the next one does.
    - `push`: the same, for a consumer in place of a reader.
    - `latency`: how many calls a second to publish. A consumer takes them meanwhile.
    - `lag`: none. Publishes while a consumer takes a second for a message.
    """

    def __init__(self, peer: TopicPeer, address: str) -> None:
        self._peer = peer
        self._address = address

    def run(self, order: Order) -> Tally:
        work: Work = {
            "create": self._create, "delete": self._delete, "publish": self._publish,
            "read": self._read, "push": self._push, "latency": self._latency, "lag": self._lag,
        }[order.work]  # fmt: skip
        self._order = order
        self._tally = Tally()
        self._messages = [os.urandom(order.content_bytes) for _ in range(order.items)]
        asyncio.run(self._run(work))
        return self._tally

    async def _run(self, work: Work) -> None:
        # One more, for the consumer.
        async with self._peer.connect(self._address, self._order.callers + 1) as topics:
            self._tally.started_ns = time.perf_counter_ns()
            await work(topics)

    def _names(self) -> Sequence[str]:
        name, count = self._order.name, self._order.count
        return [f"{name}.{number}" for number in range(count)] if count else [name]

    async def _create(self, topics: Topics) -> None:
        await topics.create(self._names())

    async def _delete(self, topics: Topics) -> None:
        await topics.delete(self._names())

    # --- producers --------------------------------------------------------------------------------

    async def _publish(self, topics: Topics) -> None:
        order, tally, names = self._order, self._tally, self._names()
        await self._greet(topics, names)

        async def call() -> None:
            while not tally.is_over(order.seconds):
                topic = random.choice(names)
                began_ns = time.perf_counter_ns()
                await topics.publish(topic, self._messages)
                tally.count(order.items, began_ns)

        await self._side_by_side(call)

    async def _greet(self, topics: Topics, names: Sequence[str]) -> None:
        """Publish to each topic once, uncounted: some clients connect and look for a topic when
        they first use it."""
        coming = iter(names)

        async def call() -> None:
            for topic in coming:
                await topics.publish(topic, self._messages)

        await self._side_by_side(call)
        self._tally.started_ns = time.perf_counter_ns()

    async def _side_by_side(self, call: Callable[[], Coroutine[None, None, None]]) -> None:
        async with asyncio.TaskGroup() as group:
            for _ in range(self._order.callers):
                group.create_task(call())

    async def _publish_stamped(self, topics: Topics) -> None:
        """At an even rate; a caller that is late makes its calls at once until it is not."""
        order, tally = self._order, self._tally
        rest = self._messages[0][_STAMP_BYTES:]
        numbers = itertools.count()

        async def call() -> None:
            while not tally.is_over(order.seconds):
                due_ns = tally.started_ns + next(numbers) * SECOND_NS // order.count
                early_ns = due_ns - time.perf_counter_ns()
                if early_ns > 0:
                    await asyncio.sleep(early_ns / SECOND_NS)
                stamp = time.perf_counter_ns().to_bytes(_STAMP_BYTES)
                await topics.publish(order.name, [stamp + rest])
                tally.items += 1
                tally.ended_ns = time.perf_counter_ns()

        await self._side_by_side(call)

    # --- consumers --------------------------------------------------------------------------------

    async def _read(self, topics: Topics) -> None:
        async def one_pass() -> None:
            async with topics.reader(self._order.name) as reader:
                await self._take_all(lambda: reader.read(self._order.items))

        await self._passes(one_pass)

    async def _push(self, topics: Topics) -> None:
        async def one_pass() -> None:
            async with self._subscribed(topics) as subscription:

                async def receive() -> Sequence[bytes]:
                    messages = await subscription.receive()
                    if messages:
                        await subscription.ack(len(messages))
                    return messages

                await self._take_all(receive)

        await self._passes(one_pass)

    async def _passes(self, one_pass: Callable[[], Awaitable[None]]) -> None:
        """Count only the time from the first answer of a pass to its last: a connection and a
        client's start take longer than many reads."""
        self._tally.ended_ns = self._tally.started_ns
        began_ns = time.perf_counter_ns()
        while time.perf_counter_ns() - began_ns < self._order.seconds * SECOND_NS:
            await one_pass()

    async def _take_all(self, take: Callable[[], Awaitable[Sequence[bytes]]]) -> None:
        order, tally = self._order, self._tally
        left = order.count - len(await self._first(take))
        last_ns = time.perf_counter_ns()
        while left > 0:
            messages = await take()
            now_ns = time.perf_counter_ns()
            if messages:
                left -= len(messages)
                tally.items += len(messages)
                tally.ended_ns += now_ns - last_ns
                last_ns = now_ns
            elif now_ns - last_ns > _PATIENCE_SECONDS * SECOND_NS:
                raise RuntimeError(f"{left} of {order.count} messages of {order.name} are missing")

    async def _first(self, take: Callable[[], Awaitable[Sequence[bytes]]]) -> Sequence[bytes]:
        async with asyncio.timeout(_PATIENCE_SECONDS):
            while True:
                if messages := await take():
                    return messages

    @contextlib.asynccontextmanager
    async def _subscribed(self, topics: Topics) -> AsyncIterator[Subscription]:
        group = f"group{time.perf_counter_ns()}"
        async with topics.subscription(self._order.name, group, CREDITS) as subscription:
            yield subscription

    # --- both -------------------------------------------------------------------------------------

    async def _latency(self, topics: Topics) -> None:
        tally, is_over = self._tally, asyncio.Event()

        async def consume(subscription: Subscription) -> None:
            while not is_over.is_set() or len(tally.samples_ns) < tally.items:
                messages = await subscription.receive()
                now_ns = time.perf_counter_ns()
                if messages:
                    stamps = (int.from_bytes(each[:_STAMP_BYTES]) for each in messages)
                    tally.samples_ns += [now_ns - stamp for stamp in stamps]
                    await subscription.ack(len(messages))

        async with self._consumed(topics, consume, is_over):
            await self._publish_stamped(topics)

    async def _lag(self, topics: Topics) -> None:
        is_over = asyncio.Event()

        async def consume(subscription: Subscription) -> None:
            while not is_over.is_set():
                for _ in await subscription.receive():
                    with contextlib.suppress(TimeoutError):
                        async with asyncio.timeout(_SLOW_SECONDS):
                            await is_over.wait()
                    if is_over.is_set():
                        return
                    await subscription.ack(1)

        async with self._consumed(topics, consume, is_over):
            await self._publish(topics)

    @contextlib.asynccontextmanager
    async def _consumed(
        self,
        topics: Topics,
        consume: Callable[[Subscription], Awaitable[None]],
        is_over: asyncio.Event,
    ) -> AsyncIterator[None]:
        """Run a consumer, which has got its first message before anything is measured."""
        order = self._order
        await topics.publish(order.name, [bytes(order.content_bytes)])
        async with self._subscribed(topics) as subscription:
            await subscription.ack(len(await self._first(subscription.receive)))
            self._tally.started_ns = time.perf_counter_ns()
            consumer = asyncio.ensure_future(consume(subscription))
            yield
            # Told, not cancelled: a client that is cancelled in a call may go on regardless.
            is_over.set()
            await asyncio.wait_for(consumer, _PATIENCE_SECONDS)
