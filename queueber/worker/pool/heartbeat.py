"""Extends leases while their items wait, are handled or are being reported."""

import asyncio
import contextlib
import math
from collections.abc import Callable
from dataclasses import dataclass

from queueber.errors import NotFound, QueueberError
from queueber.worker.pool.server_health import ServerHealth
from queueber.worker.pool.work_queue import WorkQueue
from queueber.worker.work_item import HeldLease

_BEATS_IN_A_LEASE = 3
"""Two beats may be missed before a lease ends."""

_CHECKS_IN_A_BEAT = 4
_CHECK_SECONDS_MAX = 5.0


@dataclass(eq=False)
class Heartbeat:
    queue: WorkQueue
    health: ServerHealth
    lease_seconds: float
    on_lost: Callable[[HeldLease], None]

    def __post_init__(self) -> None:
        self._beat_seconds = self.lease_seconds / _BEATS_IN_A_LEASE
        self._leases: dict[HeldLease, None] = {}
        self._is_urgent = asyncio.Event()
        self.health.on_leases_in_doubt(self._is_urgent.set)

    def add(self, lease: HeldLease) -> None:
        self._leases[lease] = None

    def forget(self, lease: HeldLease) -> None:
        self._leases.pop(lease, None)

    async def run(self) -> None:
        pause = min(self._beat_seconds / _CHECKS_IN_A_BEAT, _CHECK_SECONDS_MAX)
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._is_urgent.wait()
            due_at = asyncio.get_running_loop().time() - self._beat_seconds + pause
            if self._is_urgent.is_set():
                # Leases may be lost: extend all of them, to learn which ones still stand.
                self._is_urgent.clear()
                due_at = math.inf
            due = [lease for lease in self._leases if lease.extended_at <= due_at]
            if due:
                await self.run_once(due)

    async def run_once(self, leases: list[HeldLease]) -> None:
        """Extend these leases. The client batches the calls."""
        asked_at = asyncio.get_running_loop().time()
        error: QueueberError | None = None
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self._extend(lease)) for lease in leases]
        for lease, task in zip(leases, tasks, strict=True):
            outcome = task.result()
            if isinstance(outcome, QueueberError):
                error = outcome
                # The server did not answer, but by our clock the lease is over.
                if asyncio.get_running_loop().time() > lease.extended_at + self.lease_seconds:
                    self._lose(lease)
            elif outcome:
                lease.extended_at = asked_at
            else:
                self._lose(lease)
        if error is not None:
            self.health.failed(error)
        else:
            self.health.answered()

    async def _extend(self, lease: HeldLease) -> bool | QueueberError:
        try:
            return await self.queue.extend(self.lease_seconds, lease=lease.id)
        except NotFound:
            return False  # the queue was deleted, and its leases with it
        except QueueberError as error:
            return error

    def _lose(self, lease: HeldLease) -> None:
        # A lease also ends with its last item, and that answer may be on its way to us.
        if lease in self._leases:
            del self._leases[lease]
            self.on_lost(lease)
