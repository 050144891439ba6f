"""A lane: small operations of one kind that travel together in few calls.

An operation that finds the lane free leaves in the same turn of the loop, so a lone call is never
held back. While calls are under way, further operations gather and leave together when one of them
returns: the busier the lane, the fuller its calls.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Hashable
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypeVar

from queueber.client.core import Core
from queueber.client.futures import FUTURE_IS_DONE, fail_future
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
"""Calls under way in one lane: while the server syncs one, the next is on its way."""

_CALL_PARTS_MAX = 1000
_CALL_BYTES_MAX = MIB

_REFUSALS = (InvalidArgument, ResourceExhausted, NotFound)
"""What a server says before it does anything. After others, who knows what was done."""

P = TypeVar("P")


@dataclass(slots=True, eq=False)
class Operation(Generic[P]):
    """What one caller asked for. `parts` and `size` say how much of a call it fills.

    Operations that leave together are of one `group`.
    """

    payload: P
    future: "Future[Any]"
    parts: int
    size: int = 0
    group: Hashable = None

    def answer(self, result: object) -> bool:
        """Hand over the result; False when the caller has gone meanwhile."""
        try:
            self.future.set_result(result)
        except FUTURE_IS_DONE:
            return False
        return True

    def fail(self, error: BaseException) -> None:
        fail_future(self.future, error)


class Lane(Generic[P]):
    def __init__(
        self,
        core: Core,
        send: Callable[[list[Operation[P]]], Awaitable[None]],
        parts_max: Callable[[], int] = lambda: _CALL_PARTS_MAX,
    ) -> None:
        """`send` makes one call of several operations and answers each."""
        self._core = core
        self._send = send
        self._parts_max = parts_max
        self._pending: deque[Operation[P]] = deque()
        self._calls = 0
        self._is_leaving_soon = False

    def put(self, operation: Operation[P]) -> None:
        self._pending.append(operation)
        if self._calls < _CALLS_MAX and not self._is_leaving_soon:
            self._is_leaving_soon = True
            # Not at once: what is put in the same turn of the loop leaves with it.
            self._core.call_soon(self._leave)

    @property
    def is_busy(self) -> bool:
        """Whether others are under way or about to leave."""
        return self._calls > 0 or bool(self._pending)

    def close(self) -> None:
        for operation in self._pending:
            operation.fail(Unavailable("the client was closed before the call was sent"))
        self._pending.clear()

    def _leave(self) -> None:
        self._is_leaving_soon = False
        while self._calls < _CALLS_MAX and (operations := self._take()):
            self._calls += 1
            task = self._core.spawn(self._run(operations))
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
            self._calls -= 1
            self._leave()

    async def _send_or_fail(self, operations: list[Operation[P]]) -> None:
        try:
            await self._send(operations)
        except QueueberError as error:
            if len(operations) == 1 or not isinstance(error, _REFUSALS):
                for operation in operations:
                    operation.fail(error)
            else:
                # The server refused all because of one, and did nothing: let each stand alone.
                for operation in operations:
                    await self._send_or_fail([operation])
        except asyncio.CancelledError:
            for operation in operations:
                operation.fail(OutcomeUnknown("the client was closed while the call was under way"))
            raise
        except Exception as error:  # noqa: BLE001  whatever it is belongs to the callers
            for operation in operations:
                operation.fail(error)


def _fail_unsent(operations: list[Operation[Any]], task: "asyncio.Task[None]") -> None:
    """A task that is cancelled before its first turn runs nothing of its coroutine."""
    if task.cancelled():
        for operation in operations:
            operation.fail(Unavailable("the client was closed before the call was sent"))
