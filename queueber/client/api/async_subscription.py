"""A subscription: messages that the server pushes, and what becomes of each."""

from collections import deque
from concurrent.futures import Future
from typing import Any, Self

from queueber.client.api.message import Message, messages_of
from queueber.client.arguments.values import Error, Seconds, to_ms
from queueber.client.calls.leases import LeaseCalls
from queueber.client.calls.streams import Delivered
from queueber.client.calls.subscriptions import Feed
from queueber.client.transport.futures import ignore_outcome, wait_for_async
from queueber.client.transport.remote_queue import RemoteQueue
from queueber.errors import InvalidArgument
from queueber.ids import reference
from queueber.model import FailOutcome
from queueber.wire.pages import Columns, Piece


class AsyncReceived(Message):
    """A message of a subscription. Acknowledge it when you are done with it."""

    __slots__ = ("_delivered", "_feed")

    def __init__(
        self,
        payload: bytes,
        offset: int,
        at: int,
        piece: Piece,
        columns: Columns,
        feed: Feed,
        delivered: Delivered,
    ) -> None:
        super().__init__(payload, offset, at, piece, columns)
        self._feed = feed
        self._delivered = delivered

    @property
    def topic(self) -> str:
        return self._feed.topic_name

    @property
    def group(self) -> str:
        """ "" if the subscription has none."""
        return self._feed.terms.group

    @property
    def attempt(self) -> int:
        """1 for the first; of a shared group it rises with each failure."""
        attempts = self._delivered.attempts
        return attempts[self._at] if attempts else 1

    @property
    def lease(self) -> bytes:
        """The id of the lease that holds it, in a shared group."""
        return self._delivered.lease

    @property
    def reference(self) -> bytes:
        """What names it where calls about a lease expect the id of an item."""
        return reference(self.partition, self.offset)

    async def ack(self) -> bool:
        """Done. In an ordered group that goes for all messages before it in its partition, too.

        False in a shared group when the lease has ended, so that others may have the message.
        `Aborted` in an ordered group when another consumer has taken over.
        """
        if self._feed.is_ordered:
            return await wait_for_async(self._feed.acks.ack(self.partition, self.offset + 1))
        removed = await wait_for_async(self._leases().remove(self.reference, self.lease))
        return removed[0]

    def ack_soon(self) -> None:
        """As `ack`, but returns at once: acknowledgements that follow each other are sent together.

        The subscription sends all of them before it is closed. If one fails, the next step of the
        iteration raises that error.
        """
        if self._feed.is_ordered:
            self._feed.acks.ack_soon(self.partition, self.offset + 1)
        else:
            self._feed.settle_soon(self._leases().remove(self.reference, self.lease))

    async def fail(self, error: Error, *, delay: Seconds | None = None) -> FailOutcome:
        """Of a shared group: it failed, and is delivered again after `delay`, or after the group's
        backoff; or it becomes a dead letter."""
        failed = self._leases().fail(self.reference, error, self.lease, delay)
        return (await wait_for_async(failed))[0]

    async def release(self) -> bool:
        """Of a shared group: give it back without trying it."""
        released = self._leases().release(self.reference, self.lease)
        return (await wait_for_async(released))[0]

    async def extend(self, seconds: Seconds) -> bool:
        """Of a shared group: let its lease, and that of all messages that came with it, expire
        `seconds` from now."""
        return await wait_for_async(self._leases().extend(seconds, self.lease))

    def _leases(self) -> LeaseCalls:
        if self._feed.leases is None:
            raise InvalidArgument(
                "group: only messages of a group of kind 'shared' are leased"
                if self._feed.terms.group
                else "group: a subscription without a group acknowledges nothing; name one"
            )
        return self._feed.leases


class AsyncSubscription:
    """Messages as the server pushes them; `AsyncTopic.subscribe` makes one. Iterate over it.

    A lost connection is opened again, and the subscription goes on: with a group where the group
    is, so that messages without an acknowledgement come again; without one where it was. Ends when
    the topic is closed and all was delivered.
    """

    def __init__(self, topic: RemoteQueue, feed: Feed) -> None:
        self._topic = topic
        self._feed = feed
        self._half = max(1, feed.terms.credits // 2)
        self._held: deque[AsyncReceived] = deque()
        self._delivered: Delivered | None = None
        self._uncounted = 0
        """Messages that were handed out, and that the feed does not know of yet."""
        self.missed = 0
        """Messages that were deleted before they could be delivered."""

    def __repr__(self) -> str:
        terms = self._feed.terms
        return f"<AsyncSubscription group={terms.group!r} credits={terms.credits}>"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.aclose()

    def __del__(self) -> None:
        self._feed.close_soon()

    async def aclose(self) -> None:
        """Send what was acknowledged, give back what was not handed out, and end."""
        if self._feed.leases is not None and self._held:
            lease = self._held[0].lease
            ignore_outcome(
                self._feed.leases.release([each.reference for each in self._held], lease)
            )
        self._held.clear()
        await wait_for_async(self._feed.close())

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> AsyncReceived:
        if self._has_held() or await self._fill(None):
            return self._take()
        raise StopAsyncIteration

    async def next(self, wait: Seconds | None = None) -> AsyncReceived | None:
        """The next message; None if none came for `wait` seconds, or none will come."""
        wait_ms = None if wait is None else to_ms("wait", wait)
        return self._take() if self._has_held() or await self._fill(wait_ms) else None

    async def batch(self, wait: Seconds | None = None) -> list[AsyncReceived]:
        """The messages of the next delivery that were not handed out, which costs less than one by
        one; none if none came for `wait` seconds, or none will come."""
        wait_ms = None if wait is None else to_ms("wait", wait)
        if not self._has_held() and not await self._fill(wait_ms):
            return []
        taken = list(self._held)
        self._held.clear()
        self._uncounted += len(taken)
        self._count()
        return taken

    @property
    def is_over(self) -> bool:
        """Whether the topic is closed, or the subscription, and all that was delivered is read."""
        return self._feed.is_over and not self._held

    def _has_held(self) -> bool:
        if self._held and self._delivered is not None and self._delivered.stream.is_void:
            self._held.clear()
        return bool(self._held)

    def _take(self) -> AsyncReceived:
        message = self._held.popleft()
        self._uncounted += 1
        if self._uncounted >= self._half or not self._held:
            self._count()
        return message

    def _count(self) -> None:
        if self._delivered is not None:
            self._feed.used(self._delivered.stream, self._uncounted)
        self._uncounted = 0

    async def _fill(self, wait_ms: int | None) -> bool:
        """Hold the messages of the next delivery; False if there is none."""
        if self._feed.acks.error is not None:
            raise self._feed.acks.error
        while not self._held:
            waits: Future[Delivered | None] = self._feed.take(wait_ms)
            delivered = await wait_for_async(waits)
            if delivered is None:
                return False
            self._delivered = delivered
            self.missed += delivered.missed
            made: list[Any] = messages_of(delivered.columns, AsyncReceived, self._feed, delivered)
            self._held.extend(made)
        return True
