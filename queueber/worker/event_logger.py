"""Where a worker logs its events, and failed items at most once a second."""

import sys
from collections.abc import Iterable
from itertools import islice
from typing import Protocol

from queueber.clock import Clock, SystemClock
from queueber.limits import SECOND_MS
from queueber.worker.work_item import WorkItem

_LINE_EVERY_MS = SECOND_MS
_IDS_LOGGED_MAX = 20


class EventLogger(Protocol):
    """A structlog logger, or a pipe to the process that has one."""

    def info(self, event: str, **facts: object) -> object: ...

    def warning(self, event: str, **facts: object) -> object: ...


def make_event_logger() -> EventLogger:
    """The logger of the program; standard error if the program has not configured structlog."""
    import structlog  # it loads much, and a program that only sends items does without

    logger: EventLogger = (
        structlog.get_logger("queueber")
        if structlog.is_configured()
        else structlog.wrap_logger(structlog.PrintLogger(sys.stderr))
    )
    return logger


def logged_ids(items: Iterable[WorkItem]) -> list[str]:
    """Ids for a log line, at most 20 of them."""
    return [item.id.hex() for item in islice(items, _IDS_LOGGED_MAX)]


class FailureLog:
    """Log lines about failed items: at most one a second, so that the log stays readable."""

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
