"""Items of kinds that the worker does not know, such as those of a newer version of the program.

They are not failed: another worker may know them. They stay leased for a while, so that the worker
does not get the same ones again at once, and are released then.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Protocol

from queueber.clock import Clock, SystemClock
from queueber.limits import SECOND_MS
from queueber.worker.handlers.work_item import WorkItem
from queueber.worker.pool.failure_log import FailureLog
from queueber.worker.progress import EventLogger

UNKNOWN_KIND_MS = 5 * SECOND_MS
"""How long an item of an unknown kind is kept before others get it."""

UNKNOWN_ITEMS_MAX = 1000
"""When so many are kept, the pool leases nothing."""

_CHECK_SECONDS = 0.25


class _Release(Protocol):
    def __call__(self, items: list[WorkItem]) -> None: ...


class UnknownKinds:
    def __init__(
        self, log: EventLogger, on_change: Callable[[], None], clock: Clock | None = None
    ) -> None:
        """`on_change` is called when there is capacity again."""
        self._log = FailureLog(log, "unknown_job", clock)
        self._on_change = on_change
        self._clock = clock or SystemClock()
        self._kept: deque[tuple[int, WorkItem]] = deque()

    @property
    def is_full(self) -> bool:
        return len(self._kept) >= UNKNOWN_ITEMS_MAX

    def held_of(self, source: str) -> int:
        """How many of one queue are kept."""
        return sum(item.source == source for _, item in self._kept if not item.is_lost)

    def add(self, item: WorkItem) -> None:
        self._log.record(
            item,
            "the worker has no job of this name",
            queue=item.source,
            action="kept for 5 s, then released for other workers",
        )
        self._kept.append((self._clock.now_ms() + UNKNOWN_KIND_MS, item))

    def withdraw(self, until_ms: int | None = None) -> list[WorkItem]:
        """Those that are due, or all of them, without those whose lease is lost."""
        taken = []
        while self._kept and (until_ms is None or self._kept[0][0] <= until_ms):
            taken.append(self._kept.popleft()[1])
        return [item for item in taken if not item.is_lost]

    async def run(self, release: _Release) -> None:
        """Release them, without end."""
        while True:
            await asyncio.sleep(_CHECK_SECONDS)
            due = self.withdraw(self._clock.now_ms())
            if due:
                release(due)
                self._on_change()
