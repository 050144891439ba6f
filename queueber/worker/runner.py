"""How handlers run is the affair of three runners with one shape: threads, asyncio, trio."""

import asyncio
import contextlib
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Sequence
from typing import ClassVar

from queueber.worker.holding import HeldLease, WorkItem
from queueber.worker.outcomes import Outcome

Finished = tuple[WorkItem, Outcome]


class Runner(ABC):
    """Runs up to `concurrency` handlers; what more it is given waits inside.

    All methods are called on the pool's loop, and `on_finished` is called there too.
    """

    can_cancel: ClassVar[bool] = True

    @abstractmethod
    def put(self, items: Sequence[WorkItem]) -> None:
        """Handle these, in order, as soon as handlers are free."""

    @abstractmethod
    def withdraw(self) -> list[WorkItem]:
        """Take back what no handler has begun."""

    @abstractmethod
    def cancel(self, lease: HeldLease | None = None) -> None:
        """Cancel the handlers of a lease, or all, if they can be."""

    @property
    @abstractmethod
    def waiting(self) -> int:
        """Items that no handler has begun."""

    @abstractmethod
    async def close(self) -> None:
        """End what is idle. A handler that is still busy is abandoned."""


class Returns:
    """Outcomes on their way from other threads to the pool's loop, many in one wake-up."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        on_finished: Callable[[Sequence[Finished]], None],
    ) -> None:
        self._loop = loop
        self._on_finished = on_finished
        self._finished: deque[Finished] = deque()
        self._is_wake_pending = False

    def put(self, item: WorkItem, outcome: Outcome) -> None:
        self._finished.append((item, outcome))
        # The other side clears the flag before it empties the queue, so nothing stays behind.
        if not self._is_wake_pending:
            self._is_wake_pending = True
            with contextlib.suppress(RuntimeError):  # the pool has gone without this handler
                self._loop.call_soon_threadsafe(self._empty)

    def _empty(self) -> None:
        self._is_wake_pending = False
        finished = self._finished
        self._on_finished([finished.popleft() for _ in range(len(finished))])
