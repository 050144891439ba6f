"""Deliveries: messages that the server pushes as long as the program has granted credits."""

from typing import Self

from queueber.client.api.message import Message, messages_of
from queueber.client.arguments.values import Seconds, to_ms
from queueber.client.calls.deliveries import DeliveryCalls
from queueber.client.transport.futures import wait_for_async


class AsyncDeliveries:
    """Messages of an ordered group; `AsyncTopic.deliveries` makes one. Use it in an `async with`
    block.

    For programs that pass messages on to somebody who grants credits and acknowledges. It ends with
    its connection (`Unavailable`) and when another consumer takes over (`Aborted`). While the
    program is busy with a delivery, no other is sent. Without credits nothing comes, and there are
    none at first.
    """

    def __init__(self, calls: DeliveryCalls) -> None:
        self._calls = calls
        self.missed = 0
        """Messages that were deleted before they could be delivered."""

    def __repr__(self) -> str:
        return f"<AsyncDeliveries group={self._calls.terms.group!r} of {self._calls.topic_name!r}>"

    async def __aenter__(self) -> Self:
        try:
            await wait_for_async(self._calls.open())
        except BaseException:
            self._calls.close_soon()  # it may have been opened in the moment of a cancellation
            raise
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.aclose()

    def __del__(self) -> None:
        self._calls.close_soon()

    async def aclose(self) -> None:
        """Send what was acknowledged, and end."""
        await wait_for_async(self._calls.close())

    async def grant(self, credits: int) -> None:
        """So many messages more may be delivered; up to 1,000,000 that were not."""
        await wait_for_async(self._calls.grant(credits))

    async def next(self, wait: Seconds | None = None) -> list[Message]:
        """The messages of the next delivery; none if none came for `wait` seconds, or none will
        come. The program is done with those of the delivery before."""
        wait_ms = None if wait is None else to_ms("wait", wait)
        delivered = await wait_for_async(self._calls.take(wait_ms))
        if delivered is None:
            return []
        self.missed += delivered.missed
        made: list[Message] = messages_of(delivered.columns, Message)
        return made

    @property
    def is_over(self) -> bool:
        """Whether the topic is closed and all was delivered, or why else nothing comes is known."""
        return self._calls.is_over

    async def ack(self, offset: int, *, partition: int = 0) -> bool:
        """The group is done with the messages before `offset`, which were delivered."""
        return await wait_for_async(self._calls.acks.ack(partition, offset))

    def ack_soon(self, offset: int, *, partition: int = 0) -> None:
        """As `ack`, but returns at once: those that follow each other are sent together."""
        self._calls.acks.ack_soon(partition, offset)

    @property
    def ack_error(self) -> Exception | None:
        """Why an acknowledgement that nobody waited for failed."""
        return self._calls.acks.error
