"""The server as a pool sees it: whether it answers, and the leases that have to be extended."""

import asyncio
import math
from collections.abc import Callable
from dataclasses import dataclass

from queueber.client import AsyncQueue
from queueber.client.transport.backoff import Retries
from queueber.errors import NotFound, QueueberError
from queueber.worker.handlers.work_item import HeldLease
from queueber.worker.pool.background import first_of
from queueber.worker.progress import Counters, EventLogger

_LOG_AGAIN_SECONDS = 60.0
"""A server that refuses some calls and answers others is logged at most this often."""

_BEATS_IN_A_LEASE = 3
"""Two beats may be missed before a lease ends."""

_CHECKS_IN_A_BEAT = 4
_CHECK_SECONDS_MAX = 5.0


def new_retries() -> Retries:
    """Pauses between retries, without an end: a pool waits for its server as long as it takes."""
    return Retries(math.inf)


class ServerHealth:
    """Every call reports here whether it was answered, and each change is logged once."""

    def __init__(self, log: EventLogger, counters: Counters) -> None:
        self._log = log
        self._counters = counters
        self.is_unreachable = False
        self._lease_checks: list[Callable[[], None]] = []
        self._logged_at = -math.inf
        self._is_logged = False
        self.on_connected: Callable[[], object] = lambda: None
        """Called with the first answer."""
        self._has_connected = False

    def on_leases_in_doubt(self, check: Callable[[], None]) -> None:
        """Have `check` called whenever leases may have been lost. Every caller is called."""
        self._lease_checks.append(check)

    def doubt_leases(self) -> None:
        """Leases may have been lost: the server was unreachable, or the queue was deleted."""
        for check in self._lease_checks:
            check()

    def answered(self) -> None:
        """The server answered a call."""
        self._counters.is_connected = True
        if not self._has_connected:
            self._has_connected = True
            self.on_connected()
        if self.is_unreachable:
            self.is_unreachable = False
            self.doubt_leases()
            if self._is_logged:
                self._is_logged = False
                self._log.info("server_reachable")

    def failed(self, error: QueueberError) -> None:
        """A call got no answer, or the server refused it for now."""
        self._counters.is_connected = False
        self.is_unreachable = True
        now = asyncio.get_running_loop().time()
        if not self._is_logged and now > self._logged_at + _LOG_AGAIN_SECONDS:
            self._is_logged = True
            self._logged_at = now
            self._log.warning("server_unreachable", reason=str(error), action="retrying")


@dataclass(eq=False)
class Heartbeat:
    """Extends leases while their items wait, are handled or are being reported."""

    queue: AsyncQueue
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
            await first_of(self._is_urgent.wait(), seconds=pause)
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
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self._extend(lease)) for lease in leases]
        errors = [error for task in tasks if (error := task.result()) is not None]
        if errors:
            self.health.failed(errors[-1])
        else:
            self.health.answered()

    async def _extend(self, lease: HeldLease) -> QueueberError | None:
        """Extend one lease, and return the error if the server did not answer."""
        loop = asyncio.get_running_loop()
        asked_at = loop.time()
        try:
            is_held = await self.queue.extend(self.lease_seconds, lease=lease.id)
        except NotFound:
            is_held = False  # the queue was deleted, and its leases with it
        except QueueberError as error:
            # By our clock the lease may be over all the same.
            if loop.time() > lease.extended_at + self.lease_seconds:
                self._lose(lease)
            return error
        if is_held:
            lease.extended_at = asked_at
        else:
            self._lose(lease)
        return None

    def _lose(self, lease: HeldLease) -> None:
        # A lease also ends with its last item, and that answer may be on its way to us.
        if lease in self._leases:
            del self._leases[lease]
            self.on_lost(lease)
