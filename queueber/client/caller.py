"""What the calls of one queue share: its name, the core they run on, how they are sent."""

from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future
from functools import partial
from typing import Any, TypeVar

from queueber.client.core import Core
from queueber.client.lane import Lane, Operation
from queueber.client.link import Link
from queueber.errors import ResourceExhausted
from queueber.limits import ITEM_WIRE_BYTES, MESSAGE_OVERHEAD_BYTES

P = TypeVar("P")


class Caller:
    """One queue over one core."""

    def __init__(self, core: Core, name: str, *, must_exist: bool) -> None:
        """A queue that need not exist is created by the first call."""
        self.core = core
        self.name = name
        self._must_exist = must_exist

    def put(
        self, lane: Lane[P], payload: P, parts: int, *, size: int = 0, group: Hashable = None
    ) -> "Future[Any]":
        """Let an operation travel in a lane; returns its future. May be called from any thread."""
        operation = self.operation(payload, parts, size=size, group=group)
        self.core.post(partial(lane.put, operation))
        return operation.future

    def operation(
        self, payload: P, parts: int, *, size: int = 0, group: Hashable = None
    ) -> Operation[P]:
        return Operation(payload, self.core.new_future(), parts, size, group)

    def queue(self, link: Link) -> Any:
        """The capability of the queue."""
        return link.queue(self.name, must_exist=self._must_exist)

    async def call(
        self,
        send: Callable[[Any], Any],
        *,
        is_repeatable: bool,
        wait_seconds: float = 0.0,
        work_seconds: float = 0.0,
        is_wanted: Callable[[], bool] = lambda: True,
    ) -> Any:
        """Send a call to the queue; see `Core.call`."""
        return await self.core.call(
            lambda link: send(self.queue(link)),
            is_repeatable=is_repeatable,
            queue=self.name,
            wait_seconds=wait_seconds,
            work_seconds=work_seconds,
            is_wanted=is_wanted,
        )

    def check_size(self, field: str, parts: int, size: int) -> None:
        """Refuse here what the server would: it might break the connection instead."""
        limit = self.core.server.message_bytes_max
        size += parts * ITEM_WIRE_BYTES + MESSAGE_OVERHEAD_BYTES
        if size > limit:
            raise ResourceExhausted(
                f"{field}: the call has {size} bytes; the limit is {limit}, send several calls"
            )


def answer_each(operations: Sequence[Operation[Any]], results: list[Any]) -> None:
    """Give each operation as many of the results as it has parts."""
    start = 0
    for operation in operations:
        operation.answer(results[start : start + operation.parts])
        start += operation.parts
