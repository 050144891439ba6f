"""A queue of a server: how its calls are sent, small ones in batches.

An operation that finds no call under way is sent in the same turn of the loop, so a single call is
never delayed. While calls are under way, further operations are queued and sent together when one
of the calls returns: the more operations, the larger the calls.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Hashable, Iterable
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypeVar

from queueber import errors
from queueber.client.transport.connection import CLOSED_UNDER_WAY, CLOSED_UNSENT, Connection
from queueber.client.transport.futures import answer_future, fail_future
from queueber.client.transport.link import Ref
from queueber.limits import ITEM_WIRE_BYTES, MESSAGE_OVERHEAD_BYTES, MIB

_CALLS_MAX = 2
"""Calls under way at once: while the server syncs one, the next is being sent."""

_CALL_PARTS_MAX = 1000
_CALL_BYTES_MAX = MIB

_REFUSALS = (
    errors.InvalidArgument,
    errors.ResourceExhausted,
    errors.NotFound,
    errors.FailedPrecondition,
    errors.PermissionDenied,
)
"""Errors that a server sends before it changes anything."""

P = TypeVar("P")
T = TypeVar("T")


class RemoteQueue:
    """One queue, or topic, reached over one connection."""

    def __init__(self, connection: Connection, ref: Ref) -> None:
        self.connection = connection
        self.ref = ref
        self.call = partial(connection.call, of=ref)
        self.ask = partial(connection.ask, of=ref)

    def check_size(self, field: str, parts: int, size: int) -> None:
        """Refuse a call that is too large before it is sent: the server might disconnect."""
        limit = self.connection.server.message_bytes_max
        size += parts * ITEM_WIRE_BYTES + MESSAGE_OVERHEAD_BYTES
        if size > limit:
            raise errors.ResourceExhausted(
                f"{field}: the call has {size} bytes; the limit is {limit}, send several calls"
            )


def filled(
    method: str, write: Callable[[Any], None], field: str = "req"
) -> Callable[[Any], Awaitable[Any]]:
    """Sends a call to a queue, with a request that a function writes."""

    def send(queue: Any) -> Any:
        request = getattr(queue, method + "_request")()
        write(request.init(field))
        return request.send()

    return send


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
        return answer_future(self.future, result)

    def fail(self, error: BaseException) -> None:
        fail_future(self.future, error)


def answer_each(operations: list[Operation[Any]], results: list[Any]) -> None:
    """Give each operation as many results as it has parts."""
    start = 0
    for operation in operations:
        operation.answer(results[start : start + operation.parts])
        start += operation.parts


class Batcher(Generic[P]):
    """Sends operations of one kind, such as removes, in few calls."""

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

    def submit(
        self, payload: P, parts: int, *, size: int = 0, group: Hashable = None
    ) -> "Future[Any]":
        """Send an operation; returns its future. May be called from any thread."""
        operation = Operation(payload, self._connection.new_future(), parts, size, group)
        self._connection.post(partial(self.put, operation))
        return operation.future

    # --- on the loop ------------------------------------------------------------------------------

    def put(self, operation: Operation[P]) -> None:
        self._pending.append(operation)
        if self._under_way < _CALLS_MAX and not self._is_scheduled:
            self._is_scheduled = True
            # Not at once: operations of the same turn of the loop share the call.
            self._connection.loop.call_soon(self._send_pending)

    @property
    def is_busy(self) -> bool:
        """Whether operations are under way or waiting to be sent."""
        return self._under_way > 0 or bool(self._pending)

    def close(self) -> None:
        _fail_all(self._pending, errors.Unavailable(CLOSED_UNSENT))
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
        except asyncio.CancelledError:
            _fail_all(operations, errors.OutcomeUnknown(CLOSED_UNDER_WAY))
            raise
        except Exception as error:  # noqa: BLE001  the callers get it, whatever it is
            if len(operations) == 1 or not isinstance(error, _REFUSALS):
                _fail_all(operations, error)
                return
            # The server refused the call because of one operation: the halves find it in a few
            # calls, and the others do not wait for as many as they are.
            half = len(operations) // 2
            await self._send_or_fail(operations[:half])
            await self._send_or_fail(operations[half:])


def _fail_all(operations: Iterable[Operation[Any]], error: Exception) -> None:
    for operation in operations:
        operation.fail(error)


def _fail_unsent(operations: list[Operation[Any]], task: "asyncio.Task[None]") -> None:
    """A task that is cancelled before its first turn never starts its coroutine."""
    if task.cancelled():
        _fail_all(operations, errors.Unavailable(CLOSED_UNSENT))
