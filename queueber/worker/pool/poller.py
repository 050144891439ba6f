"""Leases items while the pool has capacity for more, and knows when the queue is empty or done.

The first contact creates the queue if it is missing. A queue that is deleted later is not created
again: whoever deleted it may not want it back, and it would lack its settings.
"""

import asyncio
import math
from collections.abc import Callable
from dataclasses import dataclass
from random import SystemRandom

from queueber.client import AsyncClient, AsyncLease, AsyncQueue
from queueber.errors import NotFound, QueueberError
from queueber.worker.handlers.work_item import WorkItem
from queueber.worker.pool.background import first_of
from queueber.worker.pool.server_health import ServerHealth, new_retries
from queueber.worker.pool.source import create_source_async
from queueber.worker.progress import Counters, EventLogger
from queueber.worker.worker_settings import WorkerSettings

# Not the generator of the whole process, whose state is the program's.
_uniform = SystemRandom().uniform

_POLL_WAIT_SECONDS = 2.0
"""Short, because only an answer shows that the server is still there."""

_EMPTY_CHECK_SECONDS = 0.2
_MISSING_QUEUE_SECONDS = 1.0
"""Time between two polls of a queue that was deleted."""

_LET_GO_SECONDS = 0.3, 1.5
"""How often to look whether others lease what the pool has let go. Two that did so at once differ
in it."""

_FATAL_CODES = ("INVALID_ARGUMENT", "PERMISSION_DENIED", "UNAUTHENTICATED")
"""Errors that a retry does not help against."""


@dataclass(eq=False)
class Poller:
    client: AsyncClient
    queue: AsyncQueue
    settings: WorkerSettings
    health: ServerHealth
    counters: Counters
    log: EventLogger
    items: set[WorkItem]
    """Items that wait or are with handlers. The pool changes it."""
    on_leased: Callable[[AsyncLease], None]
    share: Callable[[], tuple[int, int]]
    """How many items of the queue the pool may have, and how many more than it has."""
    held_unknown: Callable[[], int]
    """How many items the pool keeps because it does not know their kind."""
    let_go: Callable[[], bool]
    """Release all of them, if it has kept the first for a while. False: there are none."""
    source: str = ""
    """As `HeldLease.source`."""

    def __post_init__(self) -> None:
        self.has_found = False
        """The last poll brought items."""
        self._count_max: int | None = None
        self._polled = 0
        """Items that the polls under way may bring."""
        self._is_missing = False
        """The queue was deleted."""
        self._backoff = new_retries()
        self._has_capacity = asyncio.Event()
        self._is_idle = asyncio.Event()
        self._was_full = asyncio.Event()
        """The last poll brought as many items as it asked for."""

    def update(self) -> None:
        """Items came or went: wake up who waits for capacity, or for the last item to end."""
        if self._capacity():
            self._has_capacity.set()
        if self.items or self.counters.unreported or self._polled:
            self._is_idle.clear()
        else:
            self._is_idle.set()

    async def run(self) -> None:
        """Returns only if the pool runs until the queue is empty or done, and it is."""
        if self._count_max is None:
            self._count_max = await self._make_contact()
        await first_of(self._poll_in_turn(), self._poll_while_full())

    async def _make_contact(self) -> int:
        """Create the queue unless it must exist; return how many items a poll may ask for."""
        while True:
            try:
                if not self.settings.must_exist:
                    await create_source_async(self.client, self.settings, self.source)
                count_max = (await self.client.server()).poll_items_max
            except QueueberError as error:
                await self._pause(error)
            else:
                self._answered()
                return count_max

    async def _poll_in_turn(self) -> None:
        until = self.settings.until
        is_urgent = until is not None
        while True:
            self.update()
            was_idle = self._is_idle.is_set()
            wait = 0 if is_urgent or self.health.is_unreachable else _POLL_WAIT_SECONDS
            if await self._poll(wait):
                is_urgent = until is not None
            elif until is None:
                pass
            elif not was_idle:
                # A handler may add items, and the item that it has may come back.
                await first_of(self._is_idle.wait(), seconds=_EMPTY_CHECK_SECONDS)
            elif until == "empty" or await self._is_done():
                return
            else:
                is_urgent = False  # wait for what is delayed, or with others

    async def _is_done(self) -> bool:
        """Whether no item can become ready any more, unless somebody adds one."""
        while True:
            try:
                stats = await self.queue.stats()
            except NotFound:
                return True
            except QueueberError as error:
                await self._pause(error)
            else:
                self._answered()
                # What this pool keeps because it cannot work on it is left to others.
                if stats.ready or stats.delayed:
                    return False
                if stats.leased <= self.held_unknown():
                    return True
                # Another worker may wait for what this one keeps: let it have all of them, and end.
                if self.let_go():
                    await self._leave_to_others()
                return False

    async def _leave_to_others(self) -> None:
        """Wait as long as others lease what is ready."""
        left = math.inf
        while True:
            await asyncio.sleep(_uniform(*_LET_GO_SECONDS))
            try:
                ready = (await self.queue.stats()).ready
            except QueueberError:
                return  # the next poll meets it, too
            if not ready or ready >= left:
                return
            left = ready

    async def _poll_while_full(self) -> None:
        """Have a second poll under way while polls bring all the items that they ask for."""
        while True:
            await self._was_full.wait()
            await self._poll(wait=0)

    async def _poll(self, wait: float) -> bool:
        """Lease as many items as there is capacity for, once there is. False: none is ready."""
        # An event wakes up both polls, but the first one may use all the capacity.
        while not (count := self._capacity()):
            self._has_capacity.clear()
            await self._has_capacity.wait()
        count = min(count, self._count_max or count)
        self._polled += count
        try:
            lease = await self.queue.poll(
                count, lease=self.settings.lease_seconds, wait=wait, release_on_disconnect=True
            )
        except NotFound:
            return await self._wait_for_queue()
        except QueueberError as error:
            await self._pause(error)
            return True
        finally:
            self._polled -= count
            self.update()
        self._answered()
        self.has_found = bool(lease)
        if self._is_missing:
            self._is_missing = False
            self.log.info("queue_found", queue=self.queue.name)
        # A queue where items have killed their processes gives out fewer at a time.
        if len(lease) == count:
            self._was_full.set()
        else:
            self._was_full.clear()
        if lease:
            self.on_leased(lease)
        return bool(lease)

    async def _wait_for_queue(self) -> bool:
        """The queue was deleted: pause before the next poll. False: the pool is to end instead."""
        self._answered()
        self.health.doubt_leases()
        self._was_full.clear()
        if self.settings.until is not None:
            return False
        if not self._is_missing:
            self._is_missing = True
            self.log.warning(
                "queue_not_found", queue=self.queue.name, action="waiting until it is created again"
            )
        await asyncio.sleep(_MISSING_QUEUE_SECONDS)
        return True

    async def _pause(self, error: QueueberError) -> None:
        """Before a retry; raises the error when a retry does not help."""
        if error.code in _FATAL_CODES:
            raise error
        self.health.failed(error)
        await self._backoff.pause()

    def _answered(self) -> None:
        self.health.answered()
        self._backoff = new_retries()

    def _capacity(self) -> int:
        """How many more items the pool may lease; 0 if it is not worth a poll yet."""
        share, more = self.share()
        more -= self._polled
        # The next poll waits until half of the prefetched items are used, so that polls are few.
        return more if more >= max(1, min(self.settings.prefetch, share) // 2) else 0
