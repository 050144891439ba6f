"""Log lines about items that failed, few enough to be read."""

from dataclasses import dataclass

from queueber.clock import Clock, SystemClock
from queueber.limits import SECOND_MS
from queueber.worker.handlers.work_item import WorkItem
from queueber.worker.progress import EventLogger

_FAILURE_EVERY_MS = SECOND_MS
_ERROR_TYPES_MAX = 100
"""Types of errors that are told apart; all others are taken for one."""
_CHARS_MAX = 400
"""Of the name of a job, and of the first line of an error."""

_Line = tuple[WorkItem, str, dict[str, object]]


@dataclass(slots=True)
class _Skipped:
    """Failures of one type that are not logged."""

    until_ms: int = 0
    count: int = 0
    last: _Line | None = None


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
        kind = item.job[:_CHARS_MAX], error.partition("\n")[0].partition(":")[0][:_CHARS_MAX]
        if kind not in self._types and len(self._types) >= _ERROR_TYPES_MAX:
            kind = ("", "")
        skipped = self._types.setdefault(kind, _Skipped())
        if now_ms < skipped.until_ms:
            skipped.count += 1
            skipped.last = item, error, more
        else:
            self._write((item, error, more), skipped, now_ms)

    def flush(self, *, is_end: bool = False) -> None:
        """Log the last failure of each type that was not, a second after the one that was; or now,
        if this is the end."""
        now_ms = self._clock.now_ms()
        for skipped in self._types.values():
            if skipped.last is not None and (is_end or now_ms >= skipped.until_ms):
                skipped.count -= 1
                self._write(skipped.last, skipped, now_ms)

    def _write(self, line: _Line, skipped: _Skipped, now_ms: int) -> None:
        item, error, more = line
        facts: dict[str, object] = {"job": printable(item.job[:_CHARS_MAX])} if item.job else {}
        facts |= {"skipped_since": skipped.count} if skipped.count else {}
        self._log.warning(
            self._event,
            id=item.id.hex(),
            attempt=item.attempt,
            error=printable(error.partition("\n")[0][:_CHARS_MAX]),
            **facts,
            **(more or {"exception": printable(error, kept="\n\t")}),
        )
        skipped.until_ms, skipped.count, skipped.last = now_ms + _FAILURE_EVERY_MS, 0, None


def printable(text: str, kept: str = "") -> str:
    """What would move the cursor, or colour a terminal, is escaped: anybody may have written it."""
    if text.isprintable():
        return text
    return "".join(
        each if each.isprintable() or each in kept else each.encode("unicode_escape").decode()
        for each in text
    )
