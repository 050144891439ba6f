"""Consuming one partition of a shared group. As a poll that waits, a call can be withdrawn.

When the caller is cancelled, the server is told to withdraw the call and answers at once. If that
answer holds messages, because it was already being sent, the client releases them.
"""

import asyncio
import contextlib
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from typing import Any

import capnp

from queueber.client.arguments.values import Seconds, to_ms
from queueber.client.calls.leases import LeaseCalls
from queueber.client.calls.reads import ReadPage, read_page
from queueber.client.transport.connection import CLOSED_UNDER_WAY, Connection
from queueber.client.transport.futures import fail_future
from queueber.client.transport.remote_queue import RemoteQueue
from queueber.errors import Unavailable
from queueber.ids import reference
from queueber.limits import SECOND_MS
from queueber.model import Consuming
from queueber.wire.pages import Columns
from queueber.wire.subscriptions import write_consuming

_WAIT_ROUND_MS = 20 * SECOND_MS
"""How long one call waits. Longer waits are several calls, so a lost connection is noticed."""


@dataclass(slots=True)
class Window:
    """The answer to one call."""

    page: ReadPage
    lease_id: bytes
    """Empty if there are no messages."""
    attempts: Sequence[int]
    """Empty: the first of each."""


def references(columns: Columns) -> list[bytes]:
    """What names messages in calls about a lease."""
    return [
        reference(columns.partition, offset)
        for piece in columns.pieces
        for offset in range(piece.offset, piece.offset + piece.count)
    ]


class _Call:
    task: "asyncio.Task[None]"

    def __init__(self, future: "Future[Window]", token: int, leases: LeaseCalls) -> None:
        self.future = future
        self.token = token
        self.leases = leases
        self.is_wanted = True
        self.sent_to: Any = None
        """The topic's capability, while the call is under way."""


class ConsumeCalls:
    """Those of all topics of a client."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._under_way: set[_Call] = set()
        self._is_closed = False
        connection.senders.append(self)

    # --- any thread -------------------------------------------------------------------------------

    def consume(
        self, topic: RemoteQueue, leases: LeaseCalls, asked: Consuming, wait: Seconds
    ) -> "Future[Window]":
        """`leases` are the calls of the group, to release what nobody gets."""
        wait_ms = to_ms("wait", wait)
        future: Future[Window] = self._connection.new_future()
        self._connection.post(partial(self._start, topic, leases, asked, wait_ms, future))
        return future

    def give_back(self, leases: LeaseCalls, consumed: "Future[Window]") -> None:
        """Withdraw a call whose caller is gone; release its messages if it was answered already."""
        if not consumed.cancel() and not consumed.cancelled() and consumed.exception() is None:
            with contextlib.suppress(Unavailable):  # the client is closed
                self._connection.post(partial(_release, leases, consumed.result()))

    # --- on the loop ------------------------------------------------------------------------------

    def _start(
        self,
        topic: RemoteQueue,
        leases: LeaseCalls,
        asked: Consuming,
        wait_ms: int,
        future: "Future[Window]",
    ) -> None:
        if self._is_closed:
            fail_future(future, Unavailable(CLOSED_UNDER_WAY))
            return
        made = _Call(future, next(self._connection.tokens), leases)
        self._under_way.add(made)
        made.task = self._connection.start(
            self._consume(made, topic, asked, wait_ms),
            future,
            partial(_release, leases),
            withdraw=partial(self._withdraw, made),
        )
        made.task.add_done_callback(lambda _: self._under_way.discard(made))

    async def _consume(
        self, made: _Call, topic: RemoteQueue, asked: Consuming, wait_ms: int
    ) -> Window:
        """Ask until there are messages, or the wait is over."""
        time = self._connection.loop.time
        give_up_at = time() + wait_ms / SECOND_MS

        async def send(capability: Any) -> Any:
            request = capability.consume_request()
            body = request.init("req")
            write_consuming(body, asked)
            # Resent after a lost connection, it waits for the rest of its time.
            left_ms = int((give_up_at - time()) * SECOND_MS)
            body.timeoutMs = max(0, min(_WAIT_ROUND_MS, left_ms))
            body.token = made.token
            made.sent_to = capability
            try:
                return await request.send()
            finally:
                made.sent_to = None

        while True:
            left = max(0.0, min(_WAIT_ROUND_MS / SECOND_MS, give_up_at - time()))
            response = await topic.call(
                send, is_repeatable=True, wait_seconds=left, is_wanted=lambda: made.is_wanted
            )
            delivery = response.delivery
            page = read_page(delivery.slice)
            window = Window(page, delivery.lease, list(delivery.attempts))
            if page.columns.count or not made.is_wanted or time() + 0.001 > give_up_at:
                return window

    def _withdraw(self, made: _Call) -> None:
        """The caller does not wait any more."""
        if not made.is_wanted:
            return
        made.is_wanted = False
        if made.sent_to is None:
            made.task.cancel()
        else:
            self._connection.spawn(_tell_withdrawn(made, made.sent_to))

    # --- when the client closes, see `Sender` -----------------------------------------------------

    def close(self) -> None:
        self._is_closed = True
        for made in list(self._under_way):
            fail_future(made.future, Unavailable(CLOSED_UNDER_WAY))
            self._withdraw(made)

    @property
    def is_releasing(self) -> bool:
        return any(made.sent_to is not None for made in self._under_way)

    def end(self) -> None:
        pass


def _release(leases: LeaseCalls, window: Window) -> None:
    """The caller is gone: let other consumers have the messages."""
    if window.lease_id:
        leases.release_unclaimed(references(window.page.columns), window.lease_id)


async def _tell_withdrawn(made: _Call, topic: Any) -> None:
    try:
        # Over the same capability as the call, and so after it.
        await topic.withdrawConsume(made.token)
    except capnp.KjException:
        made.task.cancel()  # the server is gone
