"""Why handlers failed, now and then: a line a second at most, so that a log stays readable."""

from queueber.clock import Clock, SystemClock
from queueber.limits import SECOND_MS
from queueber.worker.contact import Journal
from queueber.worker.holding import WorkItem

_LINES_EVERY_MS = SECOND_MS


class Complaints:
    def __init__(self, journal: Journal, clock: Clock | None = None) -> None:
        self._journal = journal
        self._clock = clock or SystemClock()
        self._say_at_ms = 0
        self._unsaid = 0

    def note(self, item: WorkItem, error: str) -> None:
        """A handler failed. The server keeps the whole error, with the item; this is its head."""
        now_ms = self._clock.now_ms()
        if now_ms < self._say_at_ms:
            self._unsaid += 1
            return
        facts = {"others_since": self._unsaid} if self._unsaid else {}
        self._journal.warning(
            "handler_failed",
            id=item.id.hex(),
            attempt=item.attempt,
            error=error.partition("\n")[0],
            **facts,
        )
        self._say_at_ms, self._unsaid = now_ms + _LINES_EVERY_MS, 0
