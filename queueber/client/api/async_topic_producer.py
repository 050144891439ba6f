"""A producer of a topic: publishes that are stored once, however often they are sent."""

from concurrent.futures import Future
from typing import Unpack

from queueber import model
from queueber.client.arguments.new_messages import AnyMessages, NumberedOptions, to_publication
from queueber.client.calls.publishes import NumberedPublishes
from queueber.client.transport.futures import wait_for_async


class AsyncTopicProducer:
    """Publishes that are stored once, however often they are sent; `AsyncTopic.producer` makes one.

    Calls are numbered from 1 and stored in order. After a lost connection the client sends a call
    again, and the server recognises it. A program that starts again with the same id and epoch and
    makes the same calls gets the same answers: what was stored before is not stored again.
    """

    def __init__(self, topic: str, publishes: NumberedPublishes) -> None:
        self._publishes = publishes
        self.topic = topic
        self.id = publishes.producer_id
        self.epoch = publishes.epoch

    def __repr__(self) -> str:
        return (
            f"<AsyncTopicProducer {self.id!r} of {self.topic!r} epoch={self.epoch} "
            f"sequence={self.sequence}>"
        )

    @property
    def sequence(self) -> int:
        """The number of the next call; after a call failed, the number of that call."""
        return self._publishes.next_sequence

    async def publish(
        self,
        messages: AnyMessages,
        *,
        sequence: int | None = None,
        **options: Unpack[NumberedOptions],
    ) -> model.Published:
        """As `AsyncTopic.publish`. `sequence` is the number of the call, if it is not the next one.

        `Aborted` when another producer uses the id with a greater epoch, when a number was left
        out, when the call has other payloads than the one stored under its number, or when a call
        before it failed: repeat that one with its `sequence`. A call whose caller is cancelled is
        sent all the same, because it has its number.
        """
        return await wait_for_async(self._publish_soon(messages, sequence=sequence, **options))

    def _publish_soon(
        self,
        messages: AnyMessages,
        *,
        sequence: int | None = None,
        **options: Unpack[NumberedOptions],
    ) -> "Future[model.Published]":
        """As `publish`, but returns at once: several calls may be under way, and are kept in
        order."""
        publication = to_publication(self.topic, messages, **options)
        return self._publishes.submit(publication, sequence)
