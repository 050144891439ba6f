"""What all calls of one queue share: its name, its connection, and how they are sent."""

from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future
from functools import partial
from typing import Any, TypeVar, Unpack

from queueber.client.transport.batcher import Batcher, Operation
from queueber.client.transport.connection import Connection, Terms
from queueber.client.transport.link import Link
from queueber.errors import ResourceExhausted
from queueber.limits import ITEM_WIRE_BYTES, MESSAGE_OVERHEAD_BYTES

P = TypeVar("P")
T = TypeVar("T")


class RemoteQueue:
    """One queue, reached over one connection."""

    def __init__(self, connection: Connection, name: str, *, must_exist: bool) -> None:
        """Unless it `must_exist`, the first call creates the queue."""
        self.connection = connection
        self.name = name
        self._must_exist = must_exist

    def put(
        self, batcher: Batcher[P], payload: P, parts: int, *, size: int = 0, group: Hashable = None
    ) -> "Future[Any]":
        """Send an operation in a batch; returns its future. May be called from any thread."""
        operation = self.operation(payload, parts, size=size, group=group)
        self.connection.post(partial(batcher.put, operation))
        return operation.future

    def operation(
        self, payload: P, parts: int, *, size: int = 0, group: Hashable = None
    ) -> Operation[P]:
        return Operation(payload, self.connection.new_future(), parts, size, group)

    def capability(self, link: Link) -> Any:
        """The queue's capability on this link."""
        return link.queue(self.name, must_exist=self._must_exist)

    def ask(
        self, send: Callable[[Any], Any], read: Callable[[Any], T], **terms: Unpack[Terms]
    ) -> "Future[T]":
        """Send one call and read its response. May be called from any thread."""

        async def ask() -> T:
            return read(await self.call(send, **terms))

        return self.connection.submit(ask)

    async def call(
        self,
        send: Callable[[Any], Any],
        **terms: Unpack[Terms],
    ) -> Any:
        """Send a call to the queue; see `Connection.call`."""
        return await self.connection.call(
            lambda link: send(self.capability(link)), queue=self.name, **terms
        )

    def check_size(self, field: str, parts: int, size: int) -> None:
        """Refuse a call that is too large before it is sent: the server might disconnect."""
        limit = self.connection.server.message_bytes_max
        size += parts * ITEM_WIRE_BYTES + MESSAGE_OVERHEAD_BYTES
        if size > limit:
            raise ResourceExhausted(
                f"{field}: the call has {size} bytes; the limit is {limit}, send several calls"
            )


def answer_each(operations: Sequence[Operation[Any]], results: list[Any]) -> None:
    """Give each operation as many results as it has parts."""
    start = 0
    for operation in operations:
        operation.answer(results[start : start + operation.parts])
        start += operation.parts
