"""Whether the server answers: every call reports it here, and each change is logged once."""

import asyncio
import math
from collections.abc import Callable

from queueber.client.transport.backoff import Retries
from queueber.errors import QueueberError
from queueber.worker.counters import Counters
from queueber.worker.event_logger import EventLogger

_LOG_AGAIN_SECONDS = 60.0
"""A server that refuses some calls and answers others is logged at most this often."""


def new_retries() -> Retries:
    """Pauses between retries, without an end: a pool waits for its server as long as it takes."""
    return Retries(math.inf)


class ServerHealth:
    def __init__(self, log: EventLogger, counters: Counters) -> None:
        self._log = log
        self._counters = counters
        self.is_unreachable = False
        self._lease_checks: list[Callable[[], None]] = []
        self._logged_at = -math.inf
        self._is_logged = False

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
