"""The progress of a worker: its numbers, the events that it logs, the line that it shows."""

import contextlib
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, fields
from itertools import islice
from typing import Protocol

from queueber.clock import SystemClock
from queueber.limits import SECOND_MS
from queueber.worker.handlers.work_item import WorkItem

_IDS_LOGGED_MAX = 20
_LOG_SECONDS = 10.0
_LINES_A_SECOND = 4
_LOGGED = ("in_flight", "waiting", "done", "failed", "refused", "unknown")
_RATE_WINDOW_MS = 5 * SECOND_MS


@dataclass(frozen=True, slots=True)
class WorkerStats:
    """The numbers of a worker at one moment."""

    done: int = 0
    """Items whose completion the server has confirmed."""
    failed: int = 0
    """Failed attempts. The settings of the queue decide whether the item is retried."""
    died: int = 0
    """Failed attempts after which the item became a dead letter."""
    timed_out: int = 0
    """Failed attempts whose handler ran longer than its time limit."""
    refused: int = 0
    """Outcomes that came too late: the lease had ended, and another worker may have the item."""
    unknown: int = 0
    """Outcomes that were sent as the connection broke; the server may have accepted them."""
    released: int = 0
    """Items that were released unhandled because the worker shut down."""
    abandoned: int = 0
    """Released items whose handlers did not end in time."""
    unknown_jobs: int = 0
    """Items that were released because the worker has no job of their kind."""
    in_flight: int = 0
    """Items that handlers have now."""
    waiting: int = 0
    """Items that are leased and wait for a free handler."""
    unreported: int = 0
    """Handled items whose outcome the server has not confirmed yet."""
    stuck: int = 0
    """Handlers that ran too long, cannot be ended and still run: so many fewer are at work."""
    processes: int = 0
    """Running processes."""
    connecting: int = 0
    """Processes that have not reached the server yet."""
    disconnected: int = 0
    """Processes that reached the server before and cannot reach it now."""


_TOTALS = (
    "done", "failed", "died", "timed_out", "refused", "unknown", "released", "abandoned",
    "unknown_jobs",
)  # fmt: skip


class Counters:
    """What one pool counts. Only the loop of the pool writes it; any thread may read it."""

    def __init__(self) -> None:
        self.done = self.failed = self.died = self.refused = self.unknown = self.released = 0
        self.abandoned = self.unreported = self.timed_out = self.stuck = self.unknown_jobs = 0
        self.stuck_slots = 0
        """How many of the `concurrency` handlers do not work because of those that are stuck."""
        self.is_connected: bool | None = None
        """None until the first call was answered or failed."""

    def stats(self, *, in_flight: int, waiting: int) -> WorkerStats:
        return WorkerStats(
            **{name: getattr(self, name) for name in _TOTALS},
            in_flight=in_flight,
            waiting=waiting,
            unreported=self.unreported,
            stuck=self.stuck,
            processes=1,
            connecting=int(self.is_connected is None),
            disconnected=int(self.is_connected is False),
        )


def sum_stats(parts: Iterable[WorkerStats]) -> WorkerStats:
    listed = list(parts)
    return WorkerStats(
        **{f.name: sum(getattr(part, f.name) for part in listed) for f in fields(WorkerStats)}
    )


def totals_of(stats: WorkerStats) -> WorkerStats:
    """What still counts after a process has ended: its totals, without what it held."""
    return WorkerStats(**{name: getattr(stats, name) for name in _TOTALS})


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


def log_stopping(log: EventLogger, shutdown_seconds: float, handlers: int) -> None:
    """What a worker waits for after the first signal to stop, and what a second one does."""
    if handlers:
        log.info(
            "worker_stopping",
            handlers=handlers,
            seconds=shutdown_seconds,
            action="waiting for these handlers to end; a second signal abandons them",
        )


def logged_ids(items: Iterable[WorkItem]) -> list[str]:
    """Ids for a log line, at most 20 of them."""
    return [item.id.hex() for item in islice(items, _IDS_LOGGED_MAX)]


class Shown(Protocol):
    """A run whose progress is shown."""

    on_connected: Callable[[], object]
    """Called once, when the server has answered for the first time."""

    def stats(self) -> WorkerStats: ...


def showing_progress(
    queue: str, run: Shown, log: EventLogger
) -> contextlib.AbstractContextManager[object]:
    if sys.stderr.isatty():
        return _live_line(queue, run.stats)
    return _log_lines(queue, run, log)


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
    if stats.stuck:
        parts.append(f"{stats.stuck:,} stuck")
    if stats.unknown_jobs:
        parts.append(f"{stats.unknown_jobs:,} of unknown jobs")
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
def _log_lines(queue: str, run: Shown, log: EventLogger) -> Iterator[None]:
    """Logs nothing while the numbers stay the same."""
    rate, stats = Rate(), run.stats
    is_over, is_started = threading.Event(), threading.Event()

    def log_start() -> None:
        is_started.set()
        log.info("worker_started", queue=queue)

    def log_numbers(event: str) -> None:
        figures = stats()
        log.info(
            event,
            queue=queue,
            rate=round(rate.of(figures.done), 1),
            **{name: getattr(figures, name) for name in _LOGGED},
            connected=is_started.is_set() and not (figures.disconnected or figures.connecting),
        )

    def log_changes() -> None:
        before = WorkerStats()
        while not is_over.wait(_LOG_SECONDS):
            now = stats()
            if now != before:
                log_numbers("working")
            before = now

    log.info("worker_connecting", queue=queue)
    run.on_connected = log_start
    thread = threading.Thread(target=log_changes, name="queueber-display", daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()
        log_numbers("worker_ended")
