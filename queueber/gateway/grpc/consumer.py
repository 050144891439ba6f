"""The consumer behind one stream: its credits, what it was sent, and what it acknowledges."""

import asyncio
import contextlib
from bisect import bisect_right
from itertools import groupby
from typing import NamedTuple

from queueber.client import AsyncDeliveries, AsyncTopic, Message
from queueber.gateway.grpc import sluice_pb2 as wire
from queueber.gateway.grpc.names import message_id_of, message_id_text
from queueber.limits import CREDITS_MAX

_RUNS_MAX = 1024
"""Runs of ids that a consumer remembers until they are acknowledged; of others the server is
asked. Those that were published together are one run."""


_FIRST_SECONDS = 0.5
"""How long the first messages of a stream may take before others are asked for."""


class _Run(NamedTuple):
    first_id: int
    offset: int
    count: int  # type: ignore[assignment]  # nobody counts the fields of the tuple


class Consumer:
    """Sent from one task, and told what its caller says by another."""

    def __init__(
        self, topic: AsyncTopic, group: str, deliveries: AsyncDeliveries, after_sequence: int
    ) -> None:
        self._topic = topic
        self._group = group
        self._deliveries = deliveries
        self._after_sequence = after_sequence
        """Messages up to this sequence are not wanted."""
        self._owed = 0
        """Credits that the server does not know of: it takes up to a million at a time."""
        self._granted = 0
        """Credits that the server has."""
        self._runs: list[_Run] = []
        self._delivered = 0
        """The offset after the last message that was sent."""
        self._acknowledged = 0
        """The group is done with the messages before this offset."""
        self._arrived = asyncio.Event()
        self._skip_to = 0
        """Messages before this offset were acknowledged before they came."""

    # --- credits ----------------------------------------------------------------------------------

    @property
    def credits(self) -> int:
        """Messages that the caller has granted, and that were not sent."""
        return self._owed + self._granted

    @property
    def is_over(self) -> bool:
        """Whether the topic is closed, and all of it came."""
        return self._deliveries.is_over

    @property
    def is_done(self) -> bool:
        """Whether nothing is left to acknowledge."""
        return self.is_over and self._acknowledged >= self._delivered

    def check_acknowledged(self) -> None:
        """Raise the error of an acknowledgement that the server refused."""
        if self._deliveries.ack_error is not None:
            raise self._deliveries.ack_error

    async def grant(self, credits: int) -> None:
        """Additive."""
        self._owed += credits
        await self._pass_on()

    async def grant_first(self, credits: int, reads: asyncio.Semaphore) -> None:
        """As `grant`, of a stream that has messages waiting: few get their first ones at a time,
        so that many streams which are opened at once do not get as many megabytes at once."""
        async with reads:
            await self.grant(credits)
            # Not `wait_for`, which loses a cancellation that comes with what it waits for.
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_FIRST_SECONDS):
                    await self._arrived.wait()

    async def _pass_on(self) -> None:
        credits = min(self._owed, CREDITS_MAX - self._granted)
        if credits > 0:
            self._owed -= credits
            self._granted += credits
            await self._deliveries.grant(credits)

    # --- what is sent -----------------------------------------------------------------------------

    async def next(self, wait: float | None) -> list[Message]:
        """The messages to send next; none if none came in time, or none will."""
        while messages := await self._deliveries.next(wait):
            self._granted -= len(messages)
            self._arrived.set()
            if messages[0].offset < self._delivered:
                self._set_back(messages[0].offset)
            self._delivered = messages[-1].offset + 1
            wanted = [each for each in messages if self._is_wanted(each)]
            # Those that it has acknowledged before they came, or has not asked for, cost nothing.
            self._owed += len(messages) - len(wanted)
            await self._pass_on()
            if wanted:
                self._remember(wanted)
                return wanted
        return []

    def _is_wanted(self, message: Message) -> bool:
        return message.offset >= self._skip_to and message.sequence > self._after_sequence

    def _set_back(self, offset: int) -> None:
        """An operator has reset the group."""
        self._acknowledged = self._skip_to = offset
        self._runs.clear()

    def _remember(self, messages: list[Message]) -> None:
        for _, together in groupby(
            messages, key=lambda each: int.from_bytes(each.id) - each.offset
        ):
            run = list(together)
            self._runs.append(_Run(int.from_bytes(run[0].id), run[0].offset, len(run)))
        del self._runs[:-_RUNS_MAX]

    # --- what is acknowledged ---------------------------------------------------------------------

    async def acknowledge(self, text: str) -> None:
        """The group is done with the message of an id and all before it. An id that the topic does
        not have changes nothing: it may be one of another topic, or of a deleted message."""
        message_id = message_id_of(text)
        if message_id is None:
            return
        offset = self._offset_of(int.from_bytes(message_id))
        if offset is None:
            found = await self._topic.find(id=message_id)
            if found is None:
                return
            offset = found[1]
        reached = offset + 1
        if reached <= self._acknowledged:
            return  # it never goes back
        if reached <= self._delivered:
            self._deliveries.ack_soon(reached)
        else:
            # Of an earlier stream of the group: what is delivered goes on behind it.
            await self._topic.ack(self._group, reached)
            self._skip_to = reached
        self._acknowledged = reached
        done = bisect_right(self._runs, reached, key=lambda run: run.offset + run.count)
        del self._runs[:done]

    def _offset_of(self, message_id: int) -> int | None:
        """Ids rise with the offsets of a topic."""
        at = bisect_right(self._runs, message_id, key=lambda run: run.first_id) - 1
        if at < 0 or message_id >= self._runs[at].first_id + self._runs[at].count:
            return None
        return self._runs[at].offset + message_id - self._runs[at].first_id


def delivery_of(message: Message) -> bytes:
    return wire.SubscribeDownstream(
        delivery=wire.MessageDelivery(
            message_id=message_id_text(message.id),
            sequence=message.sequence,
            payload=message.payload,
            attributes=message.attributes,
            timestamp=message.timestamp_ms,
        )
    ).SerializeToString()
