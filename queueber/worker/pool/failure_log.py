"""Log lines about items that failed, few enough to be read."""

from dataclasses import dataclass

from queueber.clock import Clock, SystemClock
from queueber.limits import SECOND_MS
from queueber.worker.handlers.work_item import WorkItem
from queueber.worker.progress import EventLogger

_FAILURE_EVERY_MS = SECOND_MS
_ERROR_TYPES_MAX = 100
"""Types of errors that are told apart; all others are taken for one."""


@dataclass(slots=True)
class _Skipped:
    """Failures of one type that are not logged."""

    until_ms: int = 0
    count: int = 0


class FailureLog:
    """Log lines about failed items: at most one a second for each kind of job and type of error.

    A frequent error does not hide a rare one, and the log stays readable.
    """

    def __init__(self, log: EventLogger, event: str, clock: Clock | None = None) -> None:
        self._log = log
        self._event = event
        self._clock = clock or SystemClock()
        self._types: dict[tuple[str, str], _Skipped] = {}

    def record(self, item: WorkItem, error: str, **more: object) -> None:
        """Log an error as the server stores it: its first line, and all of it as `exception`."""
        now_ms = self._clock.now_ms()
        first_line = error.partition("\n")[0]
        kind = item.job, first_line.partition(":")[0]
        if kind not in self._types and len(self._types) >= _ERROR_TYPES_MAX:
            kind = ("", "")
        skipped = self._types.setdefault(kind, _Skipped())
        if now_ms < skipped.until_ms:
            skipped.count += 1
            return
        facts: dict[str, object] = {"job": item.job} if item.job else {}
        facts |= {"skipped_since": skipped.count} if skipped.count else {}
        self._log.warning(
            self._event,
            id=item.id.hex(),
            attempt=item.attempt,
            error=first_line,
            **facts,
            **(more or {"exception": error}),
        )
        skipped.until_ms, skipped.count = now_ms + _FAILURE_EVERY_MS, 0
