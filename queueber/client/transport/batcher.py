"""Batches small operations of one kind, such as removes, into few calls.

An operation that finds no call under way is sent in the same turn of the loop, so a single call is
never delayed. While calls are under way, further operations are queued and sent together when one
of the calls returns: the more operations, the larger the calls.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Hashable
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypeVar

from queueber.client.transport.connection import CLOSED_UNDER_WAY, CLOSED_UNSENT, Connection
from queueber.client.transport.futures import FUTURE_IS_DONE, fail_future
from queueber.errors import (
    InvalidArgument,
    NotFound,
    OutcomeUnknown,
    QueueberError,
    ResourceExhausted,
    Unavailable,
)
from queueber.limits import MIB

_CALLS_MAX = 2
"""Calls under way at once: while the server syncs one, the next is being sent."""

_CALL_PARTS_MAX = 1000
_CALL_BYTES_MAX = MIB

_REFUSALS = (InvalidArgument, ResourceExhausted, NotFound)
"""Errors that a server sends before it changes anything."""

P = TypeVar("P")


@dataclass(slots=True, eq=False)
class Operation(Generic[P]):
    """What one caller asked for. `parts` and `size` say how much of a call it fills.

    Only operations of the same `group` share a call.
    """

    payload: P
    future: "Future[Any]"
    parts: int
    size: int = 0
    group: Hashable = None

    def answer(self, result: object) -> bool:
        """Set the result; False when the caller does not wait any more."""
        try:
            self.future.set_result(result)
        except FUTURE_IS_DONE:
            return False
        return True

    def fail(self, error: BaseException) -> None:
        fail_future(self.future, error)


class Batcher(Generic[P]):
    def __init__(
        self,
        connection: Connection,
        send: Callable[[list[Operation[P]]], Awaitable[None]],
        parts_max: Callable[[], int] = lambda: _CALL_PARTS_MAX,
    ) -> None:
        """`send` makes one call of several operations and answers each of them."""
        self._connection = connection
        self._send = send
        self._parts_max = parts_max
        self._pending: deque[Operation[P]] = deque()
        self._under_way = 0
        self._is_scheduled = False

    def put(self, operation: Operation[P]) -> None:
        self._pending.append(operation)
        if self._under_way < _CALLS_MAX and not self._is_scheduled:
            self._is_scheduled = True
            # Not at once: operations of the same turn of the loop share the call.
            self._connection.call_soon(self._send_pending)

    @property
    def is_busy(self) -> bool:
        """Whether operations are under way or waiting to be sent."""
        return self._under_way > 0 or bool(self._pending)

    def close(self) -> None:
        for operation in self._pending:
            operation.fail(Unavailable(CLOSED_UNSENT))
        self._pending.clear()

    def _send_pending(self) -> None:
        self._is_scheduled = False
        while self._under_way < _CALLS_MAX and (operations := self._take()):
            self._under_way += 1
            task = self._connection.spawn(self._run(operations))
            task.add_done_callback(partial(_fail_unsent, operations))

    def _take(self) -> list[Operation[P]]:
        taken: list[Operation[P]] = []
        parts = size = 0
        parts_max = self._parts_max()
        while self._pending:
            operation = self._pending[0]
            parts += operation.parts
            size += operation.size
            if taken and (
                parts > parts_max or size > _CALL_BYTES_MAX or operation.group != taken[0].group
            ):
                break
            self._pending.popleft()
            if not operation.future.cancelled():
                taken.append(operation)
        return taken

    async def _run(self, operations: list[Operation[P]]) -> None:
        try:
            await self._send_or_fail(operations)
        finally:
            self._under_way -= 1
            self._send_pending()

    async def _send_or_fail(self, operations: list[Operation[P]]) -> None:
        try:
            await self._send(operations)
        except QueueberError as error:
            if len(operations) == 1 or not isinstance(error, _REFUSALS):
                for operation in operations:
                    operation.fail(error)
            else:
                # The server refused the call because of one operation: send each by itself.
                for operation in operations:
                    await self._send_or_fail([operation])
        except asyncio.CancelledError:
            for operation in operations:
                operation.fail(OutcomeUnknown(CLOSED_UNDER_WAY))
            raise
        except Exception as error:  # noqa: BLE001  the callers get it, whatever it is
            for operation in operations:
                operation.fail(error)


def _fail_unsent(operations: list[Operation[Any]], task: "asyncio.Task[None]") -> None:
    """A task that is cancelled before its first turn never starts its coroutine."""
    if task.cancelled():
        for operation in operations:
            operation.fail(Unavailable(CLOSED_UNSENT))
