"""Polls. Concurrent ones share a call; one that has to wait is sent by itself.

When the caller of a poll under way is cancelled, the call is not: the server is told to withdraw
it and answers at once. If that answer holds items, because it was already being sent, the client
releases them.
"""

import asyncio
import contextlib
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from typing import Any

import capnp

from queueber.client.arguments.values import Seconds, to_lease_ms, to_ms, to_number
from queueber.client.calls.leases import LeaseCalls
from queueber.client.transport.connection import CLOSED_UNDER_WAY
from queueber.client.transport.remote_queue import Batcher, Operation, RemoteQueue, filled
from queueber.errors import Unavailable
from queueber.limits import ITEM_WIRE_BYTES, MESSAGE_OVERHEAD_BYTES, SECOND_MS
from queueber.model import total_size
from queueber.wire.polls import PolledColumns, read_polled, read_polled_many

_BATCHERS_MAX = 100


@dataclass(frozen=True, slots=True)
class _Terms:
    """What polls of one call have in common."""

    lease_ms: int
    release_on_disconnect: bool


@dataclass(slots=True)
class _Poll:
    wait_ms: int
    terms: _Terms


class _Lone:
    """A poll with a call of its own. It may wait, and can be withdrawn meanwhile."""

    task: "asyncio.Task[None]"

    def __init__(self, operation: Operation[_Poll], token: int) -> None:
        self.operation = operation
        self.token = token
        self.is_wanted = True
        self.sent_to: Any = None
        """The queue's capability, while the call is under way."""


class PollCalls:
    def __init__(self, queue: RemoteQueue, leases: LeaseCalls) -> None:
        self._queue = queue
        self._connection = queue.connection
        self._leases = leases
        self._batchers: dict[_Terms, Batcher[_Poll]] = {}
        self._lone: set[_Lone] = set()
        self._is_closed = False

    # --- any thread -------------------------------------------------------------------------------

    def poll(
        self, count: int, lease: Seconds | None, wait: Seconds, *, release_on_disconnect: bool
    ) -> "Future[PolledColumns]":
        terms = _Terms(to_lease_ms(lease), bool(release_on_disconnect))
        # Servers cut what is above their limits without a word, so it is refused here.
        server = self._connection.server
        wait_ms = to_ms("wait", wait, server.poll_wait_ms_max, whose="the limit of this server")
        to_number("count", count, least=1, limit=server.poll_items_max, what="a number of items")
        operation = Operation(_Poll(wait_ms, terms), self._connection.new_future(), count)
        self._connection.post(partial(self._put, operation))
        return operation.future

    def give_back(self, polled: "Future[PolledColumns]") -> None:
        """Withdraw a poll whose caller is gone; release its items if it was answered already."""
        if not polled.cancel() and not polled.cancelled() and polled.exception() is None:
            with contextlib.suppress(Unavailable):  # the client is closed
                self._connection.post(partial(self._give_back, polled.result()))

    # --- on the loop ------------------------------------------------------------------------------

    def _put(self, operation: Operation[_Poll]) -> None:
        terms = operation.payload.terms
        batcher = self._batchers.get(terms)
        if batcher is None:
            if len(self._batchers) > _BATCHERS_MAX:
                self._batchers = {key: each for key, each in self._batchers.items() if each.is_busy}
            batcher = self._batchers[terms] = Batcher(
                self._connection,
                partial(self._send, terms),
                parts_max=lambda: self._connection.server.poll_items_max,
            )
        batcher.put(operation)

    async def _send(self, terms: _Terms, operations: list[Operation[_Poll]]) -> None:
        """Ask for what is ready in one call; polls that got nothing and may wait are sent alone."""
        alone = operations
        if len(operations) > 1 and not self._is_closed:
            counts = [operation.parts for operation in operations]
            answers = await self._poll_many(counts, terms)
            alone = []
            # After a full answer the polls that got nothing ask again: there may be more items.
            server = self._connection.server
            space = server.answer_bytes_max - server.item_bytes_max
            is_full = sum(map(_size, answers)) + MESSAGE_OVERHEAD_BYTES > space
            for operation, polled in zip(operations, answers, strict=True):
                if polled.ids or (operation.payload.wait_ms == 0 and not is_full):
                    self._answer(operation, polled)
                else:
                    alone.append(operation)
        for operation in alone:
            if self._is_closed:
                operation.fail(Unavailable(CLOSED_UNDER_WAY))
            else:
                self._start_alone(operation)

    def _start_alone(self, operation: Operation[_Poll]) -> None:
        """Not awaited: a poll that waits must not delay others."""
        lone = _Lone(operation, next(self._connection.tokens))
        self._lone.add(lone)
        lone.task = self._connection.start(
            self._poll_alone(lone),
            operation.future,
            self._give_back,
            withdraw=partial(self._withdraw, lone),
        )
        lone.task.add_done_callback(lambda _: self._lone.discard(lone))

    async def _poll_many(self, counts: list[int], terms: _Terms) -> list[PolledColumns]:
        def write(body: Any) -> None:
            body.counts = counts
            body.leaseValidityMs = terms.lease_ms
            body.bound = terms.release_on_disconnect
            body.packed = True

        send = filled("pollMany", write)
        response = await self._queue.call(
            send, is_repeatable=True, is_wanted=lambda: not self._is_closed
        )
        return read_polled_many(response.resp)

    async def _poll_alone(self, lone: _Lone) -> PolledColumns:
        payload = lone.operation.payload
        wait_seconds = payload.wait_ms / SECOND_MS
        wait_until = self._connection.loop.time() + wait_seconds

        async def send(queue: Any) -> Any:
            request = queue.poll_request()
            body = request.init("req")
            body.numItems = lone.operation.parts
            body.leaseValidityMs = payload.terms.lease_ms
            body.bound = payload.terms.release_on_disconnect
            body.packed = body.columns = True  # an older server does not pack
            # Resent after a lost connection, it waits for the rest of its time.
            wait_ms = int((wait_until - self._connection.loop.time()) * SECOND_MS)
            body.timeoutMs = max(wait_ms, 0)
            body.noWait = wait_ms <= 0
            body.token = lone.token
            lone.sent_to = queue
            try:
                return await request.send()
            finally:
                lone.sent_to = None

        response = await self._queue.call(
            send, is_repeatable=True, wait_seconds=wait_seconds, is_wanted=lambda: lone.is_wanted
        )
        return read_polled(response.resp)

    def _withdraw(self, lone: _Lone) -> None:
        """The caller does not wait any more."""
        if not lone.is_wanted:
            return
        lone.is_wanted = False
        if lone.sent_to is None:
            lone.task.cancel()
        else:
            self._connection.spawn(_tell_withdrawn(lone, lone.sent_to))

    def close(self) -> None:
        """The client closes: withdraw polls under way and send no more."""
        self._is_closed = True
        for batcher in self._batchers.values():
            batcher.close()
        for lone in list(self._lone):
            lone.operation.fail(Unavailable(CLOSED_UNDER_WAY))
            self._withdraw(lone)

    @property
    def is_under_way(self) -> bool:
        """Whether an answer with items may still arrive."""
        return any(lone.sent_to is not None for lone in self._lone) or any(
            batcher.is_busy for batcher in self._batchers.values()
        )

    def _answer(self, operation: Operation[_Poll], polled: PolledColumns) -> None:
        if self._is_closed:
            operation.fail(Unavailable(CLOSED_UNDER_WAY))
        if not operation.answer(polled):
            self._give_back(polled)

    def _give_back(self, polled: PolledColumns) -> None:
        """The caller is gone: let other consumers have the items."""
        if polled.ids:
            self._leases.release_unclaimed(polled.ids, polled.lease_id)


async def _tell_withdrawn(lone: _Lone, queue: Any) -> None:
    try:
        # Over the same capability as the poll, and so after it.
        await queue.withdrawPoll(lone.token)
    except capnp.KjException:
        # An older server does not know this call, or the server is gone: cancel the poll.
        lone.task.cancel()


def _size(polled: PolledColumns) -> int:
    """The bytes of an answer, as the server counts them."""
    size = total_size(polled.contents) + len(polled.contents) * ITEM_WIRE_BYTES
    size += sum(len(key.encode()) for key in polled.details.keys)
    for attributes in polled.details.attributes:
        size += sum(len(n.encode()) + len(value.encode()) for n, value in attributes.items())
    return size
