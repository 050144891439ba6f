"""Items of kinds that the worker does not know, such as those of a newer version of the program.

They are not failed: another worker may know them. They stay leased for a while, so that the worker
does not get the same ones again at once, and are released then. A run that ends when its queue is
empty or done keeps them until then: it would get the same ones again and again, without an end.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Protocol

from queueber.client.api.item import NO_ATTRIBUTES
from queueber.clock import Clock, SystemClock
from queueber.limits import SECOND_MS
from queueber.worker.handlers.work_item import WorkItem
from queueber.worker.pool.failure_log import FailureLog
from queueber.worker.progress import EventLogger

UNKNOWN_KIND_MS = 5 * SECOND_MS
"""How long an item of an unknown kind is kept before others get it."""

UNKNOWN_ITEMS_MAX = 1000
"""When so many are kept, the pool leases nothing."""

UNKNOWN_ITEMS_MAX_UNTIL = 100_000
"""When a run until empty or done keeps so many, it ends."""

_CHECK_SECONDS = 0.25


class _Release(Protocol):
    def __call__(self, items: list[WorkItem]) -> None: ...


class UnknownKinds:
    def __init__(
        self,
        log: EventLogger,
        on_change: Callable[[], None],
        clock: Clock | None = None,
        *,
        is_until: bool = False,
    ) -> None:
        """`on_change` is called when there is capacity again. `is_until`: the run ends by itself,
        and nothing is released before."""
        self._log = log
        self.failure_log = FailureLog(log, "unknown_job", clock)
        self._on_change = on_change
        self._clock = clock or SystemClock()
        self._is_until = is_until
        self._max = UNKNOWN_ITEMS_MAX_UNTIL if is_until else UNKNOWN_ITEMS_MAX
        self._kept: deque[tuple[int, WorkItem]] = deque()
        self._are_too_many = asyncio.Event()

    @property
    def is_full(self) -> bool:
        return len(self._kept) >= self._max

    def held_of(self, source: str) -> int:
        """How many of one queue are kept."""
        return sum(item.source == source for _, item in self._kept if not item.is_lost)

    def add(self, item: WorkItem) -> None:
        then = "at the end of the run, for" if self._is_until else "after 5 s, to"
        self.failure_log.record(
            item,
            "the worker has no job of this name",
            queue=item.source,
            action=f"released {then} other workers",
        )
        # There may be many, and nobody looks at what is in them.
        item.contents, item.value, item.attributes = b"", None, NO_ATTRIBUTES
        item._lease = None
        self._kept.append((self._clock.now_ms() + UNKNOWN_KIND_MS, item))
        if self._is_until and self.is_full:
            self._are_too_many.set()

    def withdraw(self, until_ms: int | None = None) -> list[WorkItem]:
        """Those that are due, or all of them, without those whose lease is lost."""
        taken = []
        while self._kept and (until_ms is None or self._kept[0][0] <= until_ms):
            taken.append(self._kept.popleft()[1])
        return [item for item in taken if not item.is_lost]

    def withdraw_of(self, source: str) -> list[WorkItem]:
        """All of one queue, once the first of them is due: see `Poller.let_go`."""
        its = [each for each in self._kept if each[1].source == source]
        if not its or its[0][0] > self._clock.now_ms():
            return []
        self._kept = deque(each for each in self._kept if each[1].source != source)
        return [item for _, item in its if not item.is_lost]

    async def run(self, release: _Release) -> None:
        """Release them, without end."""
        while True:
            await asyncio.sleep(_CHECK_SECONDS)
            due = self.withdraw(self._clock.now_ms())
            if due:
                release(due)
                self._on_change()

    async def wait_too_many(self) -> None:
        """Returns when a run that ends by itself has to, because it can keep no more."""
        await self._are_too_many.wait()
        self._log.warning("too_many_unknown_jobs", count=len(self._kept), action="the run ends")
