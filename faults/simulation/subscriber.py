"""A caller that gets messages of an ordered group pushed, over a connection that breaks."""

import asyncio
from collections.abc import Awaitable
from typing import Any

from faults.history import Outcome
from faults.simulation.network import Connection, ConnectionLost
from faults.simulation.topic_caller import TopicCaller, handle, told_messages
from queueber.model import Delivery, Subscribing
from queueber.service.service import Service
from queueber.service.session import Session
from queueber.service.subscription import Subscription

_Arrived = tuple[Delivery, "asyncio.Future[None]"]


class Inbox:
    """What the server delivers to one subscription, in order."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._waiting: asyncio.Queue[_Arrived | str] = asyncio.Queue()

    def deliver(self, delivery: Delivery) -> Awaitable[object]:
        answered: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.put_nowait((delivery, answered))
        return answered

    def heartbeat(self, _time_ms: int, _sequence: int) -> Awaitable[object]:
        return _done()

    def ended(self, error: str) -> Awaitable[object]:
        self._waiting.put_nowait(error or "the topic is closed")
        return _done()

    async def next(self, wait_ms: float) -> Delivery | str | None:
        """A delivery, the end of the subscription, or None if nothing comes."""
        if not self._connection.is_open:
            raise ConnectionLost
        try:
            async with asyncio.timeout(wait_ms / 1000):
                found = await self._waiting.get()
        except TimeoutError:
            return None
        if not self._connection.is_open:
            raise ConnectionLost
        if isinstance(found, str):
            return found
        delivery, answered = found
        if not answered.done():
            answered.set_result(None)
        return delivery


async def _done() -> None:
    pass


class Subscriber(TopicCaller):
    """It has one subscription at a time."""

    async def subscribe(
        self, topic: str, group: str, name: str, credits: int, *, seeks: bool = False
    ) -> tuple[Subscription, Inbox] | None:
        """What the server holds of it, for the calls below, and what arrives here. One that
        `seeks` begins with the earliest message, wherever the group is."""
        connection = await self.connected()
        inbox = Inbox(connection)
        asked = Subscribing(group, name, credits=credits, seeks=seeks)

        def ask(service: Service, session: Session) -> Awaitable[Subscription]:
            found = handle(service, session, topic)
            return service.subscriptions.subscribe(found, asked, inbox)

        told = {"topic": topic, "group": group, "subscription": name, "seeks": seeks}
        made = await self.call("subscribe", told, ask, lambda _: {})
        return None if made is None else (made, inbox)

    def _check(self, subscription: Subscription) -> None:
        """It ends with its connection, and the next one knows nothing of it."""
        if not self.is_of_present_connection(subscription):
            raise ConnectionLost

    def is_of_present_connection(self, subscription: Subscription) -> bool:
        now = self._connection
        return now is not None and now.is_open and now.session is subscription.session

    def pushed(self, topic: str, group: str, name: str, delivery: Delivery) -> None:
        """Record the messages of a delivery, one by one."""
        partition = delivery.slice.partition
        told = {"topic": topic, "group": group, "partition": partition, "subscription": name}
        for message in [each for packed in delivery.slice.packed for each in told_messages(packed)]:
            pending = self._recorder.begin(self.name, "pushed", self.queue, told)
            pending.answered(messages=[message])
            self._recorder.end(pending, Outcome.OK)

    async def ack_pushed(
        self, subscription: Subscription, place: tuple[str, str, int], name: str, offset: int
    ) -> bool:
        """Acknowledge through the subscription; whether the server took it."""
        self._check(subscription)
        topic, group, partition = place

        def ask(service: Service, _: Session) -> Awaitable[int]:
            return service.subscriptions.ack(subscription, partition, offset)

        told: dict[str, Any] = {"topic": topic, "group": group, "partition": partition}
        told |= {"offset": offset, "subscription": name}
        found = await self.call("ack", told, ask, lambda cursor: {"cursor": cursor})
        return found is not None

    async def grant(self, subscription: Subscription, credits: int) -> None:
        self._check(subscription)

        async def ask(_service: Service, _session: Session) -> None:
            subscription.grant(credits)

        await self.call("grant", {}, ask, lambda _: {})

    async def leave(self, subscription: Subscription) -> None:
        self._check(subscription)

        async def ask(_service: Service, _session: Session) -> None:
            subscription.drop()

        await self.call("unsubscribe", {}, ask, lambda _: {})
