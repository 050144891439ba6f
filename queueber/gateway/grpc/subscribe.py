"""Subscribe: one stream, from its first message to its status.

Two tasks share a stream: one reads what the caller says, the other sends. The caller may close its
side at any time: it then gets what its credits allow.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any, NamedTuple
from uuid import uuid4

from queueber.client import AsyncClient, AsyncTopic, Message
from queueber.clock import SystemClock
from queueber.errors import (
    FailedPrecondition,
    InvalidArgument,
    NotFound,
    QueueberError,
)
from queueber.gateway.bounds import Bounds
from queueber.gateway.grpc import sluice_pb2 as wire
from queueber.gateway.grpc.calls import parsed
from queueber.gateway.grpc.consumer import Consumer, delivery_of
from queueber.gateway.grpc.http2.call import Call
from queueber.gateway.grpc.measures import GrpcMeasures
from queueber.gateway.grpc.names import DEFAULT_GROUP, check_topic_name
from queueber.limits import ITEM_WIRE_BYTES, KIB, SECOND_MS
from queueber.model import GroupInfo

_LARGE_BYTES = 128 * KIB
"""Messages of so many bytes take a millisecond to encode, and are encoded one at a time."""
_TURN_MESSAGES = 64
"""So many small ones take about a millisecond; then others get a turn."""
_OFFSET_MAX = (1 << 63) - 2
"""The sequence after it is the last that the server takes."""
_COPIES = 2
"""A message that is being sent is here, and another one is on its way from the server."""


class Place(NamedTuple):
    """Where a stream begins."""

    start: dict[str, Any]
    """As the client takes it; empty: where the group is."""
    after_sequence: int = 0
    is_behind: bool = False
    """Whether there are messages that it may get at once."""


async def place_of(topic: AsyncTopic, init: wire.SubscriptionInit, group: str) -> Place:
    """Where to begin. Raises `NotFound` if there is no such topic."""
    info = await topic.describe()
    if len(info.partitions) != 1:
        raise FailedPrecondition(
            f"topic: {topic.name!r} has {len(info.partitions)} partitions, and a stream of Sluice "
            "has one order; subscribe with the client of Queueber, or to a topic of one partition"
        )
    (log,) = info.partitions
    match init.initial_position:
        case wire.InitialPosition.EARLIEST | wire.InitialPosition.LATEST as position:
            known = await _group(topic, group)
            is_new = known is None or known.is_untouched
            if position == wire.InitialPosition.LATEST and is_new:
                return Place({"start": "latest"})
            cursor = log.first_offset if known is None else max(known.cursors)
            return Place({}, is_behind=cursor < log.next_offset)
        case wire.InitialPosition.OFFSET:
            if not 1 <= init.offset <= _OFFSET_MAX:
                raise InvalidArgument(
                    f"offset: it is {init.offset}; OFFSET begins after a sequence from 1 to "
                    f"{_OFFSET_MAX}"
                )
            found = await topic.find(sequence=init.offset + 1)
            # None has such a sequence yet. Where the topic ended before it was asked for one.
            at = log.next_offset if found is None else found[1]
            return Place({"start": at, "moves": True}, init.offset, at < log.next_offset)
        case other:
            raise InvalidArgument(f"initial_position: {other} is none; the highest is 2")


async def _group(topic: AsyncTopic, group: str) -> GroupInfo | None:
    """None: it does not exist yet."""
    try:
        return await topic.describe_group(group)
    except NotFound:
        return None


class Stream:
    """One stream with its consumer. `run` it; it returns when the stream ends with OK."""

    def __init__(
        self, call: Call, bounds: Bounds, measures: GrpcMeasures, heartbeat_ms: int
    ) -> None:
        self._call = call
        self._bounds = bounds
        self._unread = bounds.unread
        self._measures = measures
        self._heartbeat = heartbeat_ms / SECOND_MS or None
        self._has_more_to_say = True
        """Whether the caller has not closed its side."""
        self._is_sending = False
        self._waits_for_turn = False
        self._task = asyncio.current_task()
        self.error: QueueberError | None = None
        """Why the gateway ends the stream, if it does."""
        self.is_cut = False
        """Whether its caller is not told."""

    async def run(self, client: AsyncClient, init: wire.SubscriptionInit) -> None:
        topic = client.topic(check_topic_name(init.topic), must_exist=True)
        group = init.consumer_group or DEFAULT_GROUP
        name = init.consumer_id or f"sluice-{uuid4().hex[:12]}"
        async with contextlib.AsyncExitStack() as opened:
            async with self._bounds.openings:
                place = await place_of(topic, init, group)
                deliveries = await opened.enter_async_context(
                    topic.deliveries(group, consumer=name, **place.start)
                )
            consumer = Consumer(topic, group, deliveries, place.after_sequence)
            self._waits_for_turn = place.is_behind
            async with _both(self._read(consumer), self._send(topic, consumer)) as (said, sent):
                await asyncio.wait({said, sent}, return_when=asyncio.FIRST_COMPLETED)
                if said.done():
                    said.result()
                    if consumer.credits or self._is_sending:
                        await sent
                else:
                    sent.result()
                    # The topic is closed, and all was sent. Its consumer may acknowledge that.
                    if not consumer.is_done:
                        await said
        consumer.check_acknowledged()

    # --- the caller's side ------------------------------------------------------------------------

    async def _read(self, consumer: Consumer) -> None:
        """Returns when the caller has closed its side, or has acknowledged the end of a topic."""
        async for raw in self._upstream():
            message = parsed(wire.SubscribeUpstream, raw)
            match message.WhichOneof("request"):
                case "credit":
                    await self._grant(consumer, message.credit.credits)
                case "ack":
                    await consumer.acknowledge(message.ack.message_id)
                    if consumer.is_done:
                        return
                case "init":
                    raise InvalidArgument("init: the stream has one already; open another stream")
                case None:
                    raise InvalidArgument("request: it is neither init, credit nor ack")
            consumer.check_acknowledged()
        self._has_more_to_say = False

    async def _grant(self, consumer: Consumer, credits: int) -> None:
        if credits and self._waits_for_turn:
            self._waits_for_turn = False
            await consumer.grant_first(credits, self._bounds.first_deliveries)
        else:
            await consumer.grant(credits)

    async def _upstream(self) -> AsyncIterator[bytes]:
        while (raw := await self._call.read()) is not None:
            yield raw

    # --- our side ---------------------------------------------------------------------------------

    async def _send(self, topic: AsyncTopic, consumer: Consumer) -> None:
        while self._has_more_to_say or consumer.credits:
            messages = await consumer.next(self._heartbeat)
            if messages:
                await self._send_all(messages)
            elif consumer.is_over or self._heartbeat is None:
                return
            else:
                await self._call.write(await _heartbeat(topic))

    async def _send_all(self, messages: list[Message]) -> None:
        """The list is empty afterwards: what was sent is not kept for the sake of the others."""
        self._is_sending = True
        self._measures.delivered(len(messages))
        sizes = [len(each.payload) + ITEM_WIRE_BYTES for each in messages]
        self._unread.change(self, _COPIES * sum(sizes))
        messages.reverse()
        raw = b""
        try:
            for at, size in enumerate(sizes, 1):
                if size < _LARGE_BYTES:
                    raw = delivery_of(messages.pop())
                    if not at % _TURN_MESSAGES:
                        await asyncio.sleep(0)
                else:
                    async with self._bounds.large_answers:
                        raw = delivery_of(messages.pop())
                        await asyncio.sleep(0)  # others get a turn
                await self._call.write(raw)
                self._unread.change(self, -_COPIES * size)
        finally:
            # The error of a stream that was ended refers to this frame, until it is collected.
            raw = b""
            messages.clear()
        self._is_sending = False

    # --- ended by the gateway ---------------------------------------------------------------------

    def hang_up(self) -> None:
        """Its caller does not read, and others need the memory: it is reset, and not told why."""
        self.is_cut = True
        self._call.reset()
        self._cancel()

    def end(self, error: QueueberError) -> None:
        """Tell the caller why, who may take a moment to hear it."""
        self.error = self.error or error
        self._cancel()

    def _cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()


async def _heartbeat(topic: AsyncTopic) -> bytes:
    page = await topic.read(last=1, without="contents")
    at_ms = SystemClock().now_ms()
    latest = page.messages[-1].sequence if page.messages else 0
    return wire.SubscribeDownstream(
        heartbeat=wire.Heartbeat(timestamp=at_ms, latest_seq=latest)
    ).SerializeToString()


@contextlib.asynccontextmanager
async def _both(*running: Any) -> AsyncIterator[tuple["asyncio.Task[None]", ...]]:
    """Tasks that are ended with the block."""
    tasks = tuple(asyncio.ensure_future(each) for each in running)
    try:
        yield tasks
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
