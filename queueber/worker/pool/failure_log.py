"""Log lines about failed items: at most one a second, so that the log stays readable."""

from queueber.clock import Clock, SystemClock
from queueber.limits import SECOND_MS
from queueber.worker.event_logger import EventLogger
from queueber.worker.work_item import WorkItem

_LINE_EVERY_MS = SECOND_MS


class FailureLog:
    def __init__(self, log: EventLogger, event: str, clock: Clock | None = None) -> None:
        self._log = log
        self._event = event
        self._clock = clock or SystemClock()
        self._log_again_at_ms = 0
        self._skipped = 0

    def record(self, item: WorkItem, error: str) -> None:
        """Log the first line of the error. The server stores the whole error with the item."""
        now_ms = self._clock.now_ms()
        if now_ms < self._log_again_at_ms:
            self._skipped += 1
            return
        facts = {"skipped_since": self._skipped} if self._skipped else {}
        self._log.warning(
            self._event,
            id=item.id.hex(),
            attempt=item.attempt,
            error=error.partition("\n")[0],
            **facts,
        )
        self._log_again_at_ms, self._skipped = now_ms + _LINE_EVERY_MS, 0
