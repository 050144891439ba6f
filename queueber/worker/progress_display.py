"""How the work goes: one live line on a terminal, otherwise a log line now and then."""

import sys
import threading
from collections import deque
from collections.abc import Callable
from typing import Self

from queueber.clock import SystemClock
from queueber.limits import SECOND_MS
from queueber.worker.counters import WorkerStats
from queueber.worker.event_logger import EventLogger

_LOG_SECONDS = 10.0
_LINES_A_SECOND = 4
_RATE_WINDOW_MS = 5 * SECOND_MS


def make_display(
    queue: str, stats: Callable[[], WorkerStats], log: EventLogger
) -> "LiveLine | LogLines":
    if sys.stderr.isatty():
        return LiveLine(queue, stats)
    return LogLines(queue, stats, log)


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


class LiveLine:
    def __init__(self, queue: str, stats: Callable[[], WorkerStats]) -> None:
        from rich.console import Console
        from rich.live import Live
        from rich.text import Text

        rate = Rate()

        def line() -> Text:
            figures = stats()
            style = "yellow" if figures.disconnected else ""
            return Text(to_line(queue, figures, rate.of(figures.done)), style, overflow="ellipsis")

        # Other output of the program appears above the line.
        self._live = Live(
            console=Console(stderr=True),
            get_renderable=line,
            refresh_per_second=_LINES_A_SECOND,
        )

    def __enter__(self) -> Self:
        self._live.__enter__()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._live.__exit__(None, None, None)


class LogLines:
    """Logs nothing while the numbers stay the same."""

    def __init__(self, queue: str, stats: Callable[[], WorkerStats], log: EventLogger) -> None:
        self._queue = queue
        self._stats = stats
        self._logger = log
        self._rate = Rate()
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="queueber-display", daemon=True)

    def __enter__(self) -> Self:
        self._logger.info("worker_started", queue=self._queue)
        self._thread.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._is_over.set()
        self._thread.join()
        self._log("worker_ended")

    def _run(self) -> None:
        before = WorkerStats()
        while not self._is_over.wait(_LOG_SECONDS):
            now = self._stats()
            if now != before:
                self._log("working")
            before = now

    def _log(self, event: str) -> None:
        figures = self._stats()
        self._logger.info(
            event,
            queue=self._queue,
            rate=round(self._rate.of(figures.done), 1),
            in_flight=figures.in_flight,
            waiting=figures.waiting,
            done=figures.done,
            failed=figures.failed,
            refused=figures.refused,
            unknown=figures.unknown,
            connected=not (figures.disconnected or figures.connecting),
        )
