"""How the work goes: one live line on a terminal, otherwise a log line now and then."""

import contextlib
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator

from queueber.clock import SystemClock
from queueber.limits import SECOND_MS
from queueber.worker.counters import WorkerStats
from queueber.worker.event_logger import EventLogger

_LOG_SECONDS = 10.0
_LINES_A_SECOND = 4
_LOGGED = ("in_flight", "waiting", "done", "failed", "refused", "unknown")
_RATE_WINDOW_MS = 5 * SECOND_MS


def showing_progress(
    queue: str, stats: Callable[[], WorkerStats], log: EventLogger
) -> contextlib.AbstractContextManager[object]:
    return _live_line(queue, stats) if sys.stderr.isatty() else _log_lines(queue, stats, log)


class Rate:
    """Items a second over the last few seconds."""

    def __init__(self) -> None:
        self._clock = SystemClock()
        self._seen: deque[tuple[int, int]] = deque([(self._clock.now_ms(), 0)])

    def of(self, count: int) -> float:
        now_ms = self._clock.now_ms()
        self._seen.append((now_ms, count))
        while len(self._seen) > 2 and self._seen[1][0] <= now_ms - _RATE_WINDOW_MS:
            self._seen.popleft()
        since_ms, before = self._seen[0]
        return (count - before) * SECOND_MS / max(now_ms - since_ms, 1)


def to_line(queue: str, stats: WorkerStats, rate: float) -> str:
    parts = [
        f"{queue}: {rate:,.0f}/s",
        f"{stats.in_flight:,} in flight",
        f"{stats.waiting:,} waiting",
        f"{stats.done:,} done",
        f"{stats.failed:,} failed",
        f"{stats.refused:,} refused",
    ]
    if stats.unknown:
        parts.append(f"{stats.unknown:,} unknown")
    if stats.processes > 1:
        parts.append(f"{stats.processes} processes")
    parts.append(_connection(stats))
    return ", ".join(parts)


def _connection(stats: WorkerStats) -> str:
    if stats.disconnected:
        whose = "" if stats.disconnected == stats.processes else f" from {stats.disconnected}"
        return f"cannot reach the server{whose}; retrying"
    # Before the first answer nothing is wrong yet.
    return "connecting" if stats.connecting == stats.processes else "connected"


def _live_line(
    queue: str, stats: Callable[[], WorkerStats]
) -> contextlib.AbstractContextManager[object]:
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    rate = Rate()

    def line() -> Text:
        figures = stats()
        style = "yellow" if figures.disconnected else ""
        return Text(to_line(queue, figures, rate.of(figures.done)), style, overflow="ellipsis")

    # Other output of the program appears above the line.
    return Live(
        console=Console(stderr=True), get_renderable=line, refresh_per_second=_LINES_A_SECOND
    )


@contextlib.contextmanager
def _log_lines(queue: str, stats: Callable[[], WorkerStats], log: EventLogger) -> Iterator[None]:
    """Logs nothing while the numbers stay the same."""
    rate = Rate()
    is_over = threading.Event()

    def log_numbers(event: str) -> None:
        figures = stats()
        log.info(
            event,
            queue=queue,
            rate=round(rate.of(figures.done), 1),
            **{name: getattr(figures, name) for name in _LOGGED},
            connected=not (figures.disconnected or figures.connecting),
        )

    def log_changes() -> None:
        before = WorkerStats()
        while not is_over.wait(_LOG_SECONDS):
            now = stats()
            if now != before:
                log_numbers("working")
            before = now

    log.info("worker_started", queue=queue)
    thread = threading.Thread(target=log_changes, name="queueber-display", daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()
        log_numbers("worker_ended")
