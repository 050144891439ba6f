"""What the three runners (threads, asyncio, trio) have in common."""

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable, Sequence
from typing import Protocol

from queueber.worker.handlers.handler_outcome import Outcome
from queueber.worker.work_item import HeldLease, WorkItem

Finished = tuple[WorkItem, Outcome]
OnFinished = Callable[[Sequence[Finished]], None]

CANCEL_SECONDS_MAX = 1.0
"""How long cancelled handlers have to end. After that they are abandoned."""


class Runner(Protocol):
    """Runs up to `concurrency` handlers at once; further items wait in the runner.

    The pool calls all methods on its loop, and the runner calls `on_finished` there.
    """

    @property
    def can_cancel(self) -> bool:
        """Whether `cancel` ends handlers that are running."""

    @property
    def waiting(self) -> int:
        """Items that no handler has begun."""

    def put(self, items: Sequence[WorkItem]) -> None:
        """Handle these items, in order, as soon as handlers are free."""

    def withdraw(self) -> list[WorkItem]:
        """Take back the items that no handler has begun."""

    def cancel(self, lease: HeldLease | None = None) -> None:
        """Cancel the handlers of one lease, or all of them."""

    async def close(self) -> None:
        """End idle threads and tasks. Handlers that do not end in time are abandoned."""


class FinishedQueue:
    """Carries outcomes from other threads to the loop of the pool, many in one wakeup."""

    def __init__(self, loop: asyncio.AbstractEventLoop, on_finished: OnFinished) -> None:
        self._loop = loop
        self._on_finished = on_finished
        self._finished: deque[Finished] = deque()
        self._is_wakeup_pending = False

    def put(self, item: WorkItem, outcome: Outcome) -> None:
        self._finished.append((item, outcome))
        # `_empty` clears the flag before it reads the queue, so no outcome stays behind.
        if not self._is_wakeup_pending:
            self._is_wakeup_pending = True
            with contextlib.suppress(RuntimeError):  # the loop is closed: handler was abandoned
                self._loop.call_soon_threadsafe(self._empty)

    def _empty(self) -> None:
        self._is_wakeup_pending = False
        finished = self._finished
        self._on_finished([finished.popleft() for _ in range(len(finished))])
