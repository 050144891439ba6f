"""One subscription of the server, over one connection."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import capnp

from queueber.client.transport.link import Link, error_of
from queueber.client.transport.remote_queue import RemoteQueue
from queueber.errors import FailedPrecondition, QueueberError
from queueber.ids import reference
from queueber.model import GroupKind, Subscribing
from queueber.schema import wire
from queueber.wire.pages import Columns
from queueber.wire.subscriptions import write_subscribing


@dataclass(slots=True, eq=False)
class Delivered:
    """Messages that the server has pushed."""

    stream: "Stream"
    columns: Columns
    next_offset: int
    lease: bytes
    """Of a shared group."""
    attempts: Sequence[int]
    """Empty: the first of each."""
    missed: int

    def references(self) -> list[bytes]:
        """What names the messages in calls about a lease."""
        return [
            reference(self.columns.partition, offset)
            for piece in self.columns.pieces
            for offset in range(piece.offset, piece.offset + piece.count)
        ]


Put = Callable[[Delivered], Awaitable[None] | None]
"""Takes a delivery. What it returns is awaited before the server hears that it was taken."""


class Stream:
    def __init__(self, put: Put, terms: Subscribing) -> None:
        self._put: Put | None = put
        self._terms = terms
        self._refill_at = max(1, terms.credits // 2)
        self._used = 0
        self._ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._grants: set[asyncio.Task[None]] = set()
        self.subscription: Any = None
        self.is_void = False
        """Whether its messages are delivered again, so that those here must not be handed out."""

    async def open(self, topic: RemoteQueue, link: Link) -> None:
        send = partial(_send_subscribe, self._terms, _Consumer(self))
        response = await topic.connection.answer(link, send, is_repeatable=True, of=topic.ref)
        self.subscription = response.subscription
        self.use(0)  # deliveries may be here, and used, before the answer is

    async def wait_ended(self) -> None:
        """Until the server has delivered the last message of a closed topic; raises its error."""
        await asyncio.shield(self._ended)

    def use(self, count: int) -> None:
        """So many messages were gone through: let as many follow, once half is used."""
        self._used += count
        if self._used >= self._refill_at and self.subscription is not None:
            task = asyncio.ensure_future(self._grant(self._used))
            self._used = 0
            self._grants.add(task)
            task.add_done_callback(self._grants.discard)

    async def _grant(self, credits: int) -> None:
        with contextlib.suppress(capnp.KjException):  # the stream has ended, which shows elsewhere
            await self.subscription.grant(credits)

    async def close(self) -> None:
        if self.subscription is not None:
            await self.subscription.close()

    def forget(self, *, is_void: bool) -> None:
        """The connection is lost, or nobody follows: what still comes is dropped."""
        self.is_void = is_void
        self._put = None
        self.subscription = None
        for task in list(self._grants):
            task.cancel()
        if not self._ended.done():
            self._ended.cancel()
        elif not self._ended.cancelled():
            self._ended.exception()  # somebody has seen it, or nobody will

    # --- from the server --------------------------------------------------------------------------

    def delivered(self, delivery: Any) -> Awaitable[None] | None:
        found = delivery.slice
        columns = Columns(found.partition, found.messages)
        if self._put is not None and self._is_of_kind(delivery):
            attempts, missed = list(delivery.attempts), delivery.missed
            return self._put(
                Delivered(self, columns, found.nextOffset, delivery.lease, attempts, missed)
            )
        return None

    def _is_of_kind(self, delivery: Any) -> bool:
        """Whether the group is of the kind that was asked for; else the program could not
        acknowledge, and the stream ends."""
        terms = self._terms
        has = GroupKind.SHARED if delivery.lease else GroupKind.ORDERED
        if not terms.group or terms.settings.kind is has:
            return True
        self.ended(
            f"{FailedPrecondition.code}: group {terms.group!r} exists and is of kind "
            f"{has.value!r}; subscribe with kind={has.value!r}"
        )
        return False

    def ended(self, text: str) -> None:
        if self._ended.done():
            return
        error: QueueberError | None = error_of(text) if text else None
        if error is None:
            self._ended.set_result(None)
        else:
            self._ended.set_exception(error)


class _Consumer(wire.Consumer.Server):  # type: ignore[misc]  # capnp is untyped
    """What the server calls."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream

    async def deliver_context(self, context: Any) -> None:
        taken = self._stream.delivered(context.params.delivery)
        if taken is not None:
            await taken

    async def heartbeat_context(self, context: Any) -> None:
        pass

    async def ended_context(self, context: Any) -> None:
        self._stream.ended(context.params.error)


def _send_subscribe(terms: Subscribing, consumer: _Consumer, topic: Any) -> Any:
    request = topic.subscribe_request()
    write_subscribing(request.init("req"), terms)
    request.consumer = consumer
    return request.send()
