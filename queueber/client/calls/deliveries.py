"""Deliveries of one subscription of an ordered group, with credits that the program grants itself.

Unlike a `Feed` it has one connection, and is over when that is. One delivery is under way at a
time: the server sends the next one when the program has come back for it, so a program that is slow
holds one delivery, whatever it has granted.
"""

import asyncio
import contextlib
from concurrent.futures import Future
from functools import partial

import capnp

from queueber.client.arguments.values import to_number
from queueber.client.calls.acks import OrderedAcks
from queueber.client.calls.streams import Delivered, Stream
from queueber.client.transport.backoff import Retries
from queueber.client.transport.connection import CLOSED
from queueber.client.transport.futures import answer_future, fail_future
from queueber.client.transport.link import Link, error_of
from queueber.client.transport.remote_queue import RemoteQueue
from queueber.errors import QueueberError, Unavailable
from queueber.limits import CREDITS_MAX, SECOND_MS
from queueber.model import Subscribing

_CLOSE_SECONDS_MAX = 1.0


class DeliveryCalls:
    def __init__(self, topic: RemoteQueue, terms: Subscribing) -> None:
        self.topic_name = topic.ref.name
        self.terms = terms
        self.acks = OrderedAcks(topic, terms.group)
        self.is_over = False
        """Whether nothing more comes."""
        self._topic = topic
        self._connection = topic.connection
        self._stream: Stream | None = None
        self._task: asyncio.Task[None] | None = None
        self._ready: Delivered | None = None
        self._answered: asyncio.Future[None] | None = None
        """Set when the server may send the next delivery."""
        self._is_taken = False
        self._waiting: Future[Delivered | None] | None = None
        self._error: Exception | None = None

    # --- any thread -------------------------------------------------------------------------------

    def open(self) -> "Future[None]":
        return self._connection.submit(self._open)

    def grant(self, credits: int) -> "Future[None]":
        to_number("credits", credits, limit=CREDITS_MAX)
        return self._connection.submit(partial(self._grant, credits))

    def take(self, wait_ms: int | None) -> "Future[Delivered | None]":
        """The next delivery, and the program is done with the one before; None if none came in
        time, or none will."""
        future: Future[Delivered | None] = self._connection.new_future()
        self._connection.post(partial(self._take, future, wait_ms))
        return future

    def close(self) -> "Future[None]":
        return self._connection.submit(self._close)

    def close_soon(self) -> None:
        """Nobody refers to it any more."""
        with contextlib.suppress(QueueberError, RuntimeError):
            self._connection.post(lambda: self._connection.spawn(self._close()))

    # --- on the loop ------------------------------------------------------------------------------

    async def _open(self) -> None:
        retries = Retries(self._connection.give_up_at())
        while True:
            try:
                link = await self._connection.get_link(retries.give_up_at)
                stream = Stream(self._put, self.terms)
                await stream.open(self._topic, link)
            except QueueberError as error:
                if not error.retryable or not await retries.pause():
                    raise
            else:
                break
        self._stream = self.acks.stream = stream
        self._task = self._connection.spawn(self._follow(link, stream))
        self._task.add_done_callback(lambda _: self._end(Unavailable(CLOSED)))

    async def _follow(self, link: Link, stream: Stream) -> None:
        lost = asyncio.ensure_future(link.is_lost.wait())
        ended = asyncio.ensure_future(stream.wait_ended())
        try:
            await asyncio.wait({lost, ended}, return_when=asyncio.FIRST_COMPLETED)
            if ended.done():
                ended.result()
                self._end(None)
            else:
                self._end(Unavailable("the connection to the server was lost; subscribe again"))
        except QueueberError as error:
            self._end(error)
        finally:
            lost.cancel()
            ended.cancel()
            # What was delivered can be acknowledged still, unless another one has taken over.
            self.acks.stream = None if link.is_lost.is_set() else stream

    async def _grant(self, credits: int) -> None:
        stream = self._stream
        if stream is None or stream.subscription is None or self.is_over:
            raise self._error or Unavailable("the subscription is over; subscribe again")
        try:
            await stream.subscription.grant(credits)
        except capnp.KjException as failure:
            if failure.type == "DISCONNECTED":
                return  # the deliveries end, which says why
            raise error_of(failure.description) from None

    def _put(self, delivered: Delivered) -> "asyncio.Future[None] | None":
        if self.is_over:
            return None  # nobody takes it, and the server must not wait for that
        self._ready, self._is_taken = delivered, False
        self._answered = asyncio.get_running_loop().create_future()
        self._answer()
        return self._answered

    def _take(self, future: "Future[Delivered | None]", wait_ms: int | None) -> None:
        if self._is_taken:
            self._let_next_come()
        self._waiting = future
        if wait_ms is not None:
            self._connection.loop.call_later(wait_ms / SECOND_MS, self._give_up, future)
        self._answer()

    def _let_next_come(self) -> None:
        if self._answered is not None and not self._answered.done():
            self._answered.set_result(None)

    def _give_up(self, future: "Future[Delivered | None]") -> None:
        if self._waiting is future:
            self._waiting = None
            answer_future(future, None)

    def _answer(self) -> None:
        future = self._waiting
        if future is None:
            return
        if self._ready is not None and not self._is_taken:
            self._waiting = None
            self._is_taken = answer_future(future, self._ready)
            if self._is_taken:
                self._ready = None  # its bytes are the program's
        elif self.is_over:
            self._waiting = None
            if self._error is not None:
                fail_future(future, self._error)
            else:
                answer_future(future, None)

    def _end(self, error: Exception | None) -> None:
        if self.is_over:
            return
        self.is_over, self._error = True, error
        if error is not None and not self._is_taken:
            self._ready = None  # it is delivered again, to this consumer or another one
        self._answer()

    async def _close(self) -> None:
        with contextlib.suppress(TimeoutError, QueueberError, capnp.KjException):
            async with asyncio.timeout(_CLOSE_SECONDS_MAX):
                await self.acks.sent()
        self._end(None)
        self._ready = None
        self._let_next_come()
        stream, self._stream, self.acks.stream = self._stream, None, None
        if stream is not None:
            with contextlib.suppress(TimeoutError, capnp.KjException):
                async with asyncio.timeout(_CLOSE_SECONDS_MAX):
                    await stream.close()
            stream.forget(is_void=True)
        if self._task is not None:
            self._task.cancel()
