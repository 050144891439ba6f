"""A subscription: messages that the server pushes as long as there are credits.

A `Feed` outlives connections. Each connection has *streams*: one for a group, or one for each
partition if there is no group, because without one the client itself remembers how far it is.

    feed ─ stream ─ subscription of the server ─ deliver ─▶ ready ─▶ taken ─▶ used ─▶ grant
                                                                    └ when half the credits are used

After a lost connection a group goes on at its cursor: what an ordered group has not acknowledged is
delivered again, and so the client drops what it holds. Leases of a shared group go on.
"""

import asyncio
import contextlib
from collections import deque
from concurrent.futures import Future
from dataclasses import replace
from functools import partial
from operator import methodcaller
from typing import Any

import capnp

from queueber.client.calls.acks import OrderedAcks
from queueber.client.calls.leases import LeaseCalls
from queueber.client.calls.streams import Delivered, Stream
from queueber.client.transport.backoff import Retries
from queueber.client.transport.connection import CLOSED
from queueber.client.transport.futures import answer_future, fail_future
from queueber.client.transport.link import Link
from queueber.client.transport.remote_queue import RemoteQueue
from queueber.errors import QueueberError, Unavailable
from queueber.limits import SECOND_MS
from queueber.model import GroupKind, Position, Start, Subscribing
from queueber.wire.topics import read_topic_info

_CLOSE_SECONDS_MAX = 1.0


class Feed:
    """The deliveries of one subscription, over as many connections as it takes."""

    def __init__(self, topic: RemoteQueue, terms: Subscribing, leases: LeaseCalls | None) -> None:
        self.topic = topic
        self.topic_name = topic.ref.name
        self.terms = terms
        self.leases = leases
        """Of a shared group."""
        self.acks = OrderedAcks(topic, terms.group)
        self.is_over = False
        """Whether no delivery follows those that are ready."""
        self._connection = topic.connection
        self._ready: deque[Delivered] = deque()
        self._waiting: deque[Future[Delivered | None]] = deque()
        self._error: Exception | None = None
        self._streams: list[Stream] = []
        self._offsets: dict[int, int] = {}
        """Without a group: for each partition where to go on."""
        self._settling: set[Future[Any]] = set()
        self._task: asyncio.Task[None] | None = None
        self._connection.post(self._begin)

    @property
    def is_ordered(self) -> bool:
        return bool(self.terms.group) and self.terms.settings.kind is GroupKind.ORDERED

    # --- any thread -------------------------------------------------------------------------------

    def take(self, wait_ms: int | None) -> "Future[Delivered | None]":
        """The next delivery; None if none came in time, or none will."""
        future: Future[Delivered | None] = self._connection.new_future()
        self._connection.post(partial(self._wait, future, wait_ms))
        return future

    def used(self, stream: Stream, count: int) -> None:
        """The program has gone through so many messages of a stream."""
        self._connection.post(partial(stream.use, count))

    def settle_soon(self, settling: "Future[Any]") -> None:
        """Nobody waits for this call about a lease, but the subscription does before it ends."""
        self._settling.add(settling)
        settling.add_done_callback(self._settled)

    def _settled(self, settling: "Future[Any]") -> None:
        self._settling.discard(settling)
        if not settling.cancelled() and isinstance(error := settling.exception(), Exception):
            self.acks.error = self.acks.error or error

    def close(self) -> "Future[None]":
        return self._connection.submit(self._close)

    def close_soon(self) -> None:
        """Nobody refers to the subscription any more."""
        with contextlib.suppress(QueueberError, RuntimeError):
            self._connection.post(lambda: self._connection.spawn(self._close()))

    # --- on the loop: who waits for deliveries ----------------------------------------------------

    def _begin(self) -> None:
        self._task = self._connection.spawn(self._run())
        self._task.add_done_callback(lambda _: self._end(Unavailable(CLOSED)))

    def _wait(self, future: "Future[Delivered | None]", wait_ms: int | None) -> None:
        self._waiting.append(future)
        if wait_ms is not None:
            loop = self._connection.loop
            loop.call_later(wait_ms / SECOND_MS, self._give_up, future)
        self._answer()

    def _give_up(self, future: "Future[Delivered | None]") -> None:
        if future in self._waiting:
            self._waiting.remove(future)
            answer_future(future, None)

    def put(self, delivered: Delivered) -> None:
        if not self.terms.group:
            self._offsets[delivered.columns.partition] = delivered.next_offset
        self._ready.append(delivered)
        self._answer()

    def _answer(self) -> None:
        while self._waiting and (self._ready or self.is_over):
            future = self._waiting.popleft()
            if self._ready:
                if answer_future(future, self._ready[0]):
                    self._ready.popleft()
            elif self._error is not None:
                fail_future(future, self._error)
            else:
                answer_future(future, None)

    def _end(self, error: Exception | None) -> None:
        if not self.is_over:
            self.is_over, self._error = True, error
            self._answer()

    # --- on the loop: connections -----------------------------------------------------------------

    async def _run(self) -> None:
        retries = Retries(self._connection.give_up_at())
        while True:
            try:
                link = await self._connection.get_link(retries.give_up_at)
                await self._open(link)
                retries = Retries(self._connection.give_up_at())
                if await self._follow(link):
                    self._end(None)
                    return
            except QueueberError as error:
                if not error.retryable or not await retries.pause():
                    self._error = error
                    self._forget_streams()
                    self._end(error)
                    return
            finally:
                self._forget_streams()

    async def _open(self, link: Link) -> None:
        for terms in await self._terms(link):
            stream = Stream(self.put, terms)
            self._streams.append(stream)
            await stream.open(self.topic, link)
        self.acks.stream = self._streams[0] if self.is_ordered else None

    async def _terms(self, link: Link) -> list[Subscribing]:
        """Of each stream."""
        terms = self.terms
        if terms.group:
            return [terms]
        response = await self._connection.answer(
            link, methodcaller("describe"), is_repeatable=True, of=self.topic.ref
        )
        ends = [each.next_offset for each in read_topic_info(response.topic).partitions]
        partitions = terms.partitions or range(len(ends))
        if terms.position.start is Start.LATEST and not self._offsets:
            self._offsets = {at: ends[at] for at in partitions if at < len(ends)}
        credits = max(1, terms.credits // len(partitions))
        return [
            replace(
                terms,
                partitions=(at,),
                credits=credits,
                position=_goes_on(terms.position, self._offsets.get(at)),
            )
            for at in partitions
        ]

    async def _follow(self, link: Link) -> bool:
        """Until every stream has ended, which is True; or until the connection is lost."""
        lost = asyncio.ensure_future(link.is_lost.wait())
        ends = {asyncio.ensure_future(stream.wait_ended()) for stream in self._streams}
        try:
            while ends and not lost.done():
                done, _ = await asyncio.wait({lost, *ends}, return_when=asyncio.FIRST_COMPLETED)
                for each in done & ends:
                    each.result()  # raises what the server said
                ends -= done
            return not ends
        finally:
            for each in (lost, *ends):
                each.cancel()

    def _forget_streams(self) -> None:
        self.acks.stream = None
        # What an ordered group has here is delivered again, to this consumer or another one.
        is_void = self.is_ordered and (self._error is not None or not self.is_over)
        for stream in self._streams:
            stream.forget(is_void=is_void)
        self._streams.clear()
        if is_void:
            self._ready.clear()

    async def _close(self) -> None:
        with contextlib.suppress(TimeoutError, QueueberError, capnp.KjException):
            async with asyncio.timeout(_CLOSE_SECONDS_MAX):
                await self.acks.sent()
                for settling in list(self._settling):
                    is_of_loop = isinstance(settling, asyncio.Future)
                    waited: Any = settling if is_of_loop else asyncio.wrap_future(settling)
                    await waited
        self._end(None)
        streams = list(self._streams)
        if self.leases is not None:
            for delivered in self._ready:
                self.leases.release_unclaimed(delivered.references(), delivered.lease)
        self._ready.clear()
        with contextlib.suppress(TimeoutError, capnp.KjException):
            async with asyncio.timeout(_CLOSE_SECONDS_MAX):
                for stream in streams:
                    await stream.close()
        if self._task is not None:
            self._task.cancel()


def _goes_on(position: Position, offset: int | None) -> Position:
    return position if offset is None else Position(Start.OFFSET, offset, moves=True)
