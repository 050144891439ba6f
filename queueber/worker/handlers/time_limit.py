"""The time limit of handlers: which ones run, until when each may, and the error of an overrun.

Handlers begin and end on any thread; the loop of the pool looks for those that are late. Whoever
takes an item out of the table first reports it: the handler that ended, or the one who gave it up.
"""

import asyncio
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass

from queueber.clock import seconds
from queueber.worker.handlers.work_item import (
    WORKER_FOLDER,
    Duration,
    Failed,
    OnError,
    WorkItem,
    failed_with,
    headline,
    to_seconds,
)

TIMEOUT_SECONDS_MIN = 0.01
"""The shortest limit: handlers are not looked at more often."""

_LATE_CHECK_SECONDS = 0.1
"""How often a handler that was cancelled is looked at, until it has ended."""


class HandlerTimeout(Exception):
    """A handler ran longer than the `timeout` of its worker. Its item fails with this error."""

    def __init__(self, limit_seconds: float) -> None:
        super().__init__(f"the handler ran longer than {limit_seconds:g} s (its timeout)")


class HandlersStuck(RuntimeError):
    """Every handler of a worker ran longer than its timeout and did not end: none is left.

    Not a `QueueberError`: no call failed.
    """


@dataclass(slots=True, eq=False)
class Deadline:
    """Until when one handler may run."""

    at: float
    cancelled_at: float | None = None
    """When it was cancelled because it was late."""


def to_timeout(timeout: Duration | None) -> float | None:
    return None if timeout is None else to_seconds("timeout", timeout, TIMEOUT_SECONDS_MIN)


class TimeLimit:
    def __init__(self, limit_seconds: float, on_error: OnError | None = None) -> None:
        self.limit_seconds = limit_seconds
        self._on_error = on_error
        self._running: dict[WorkItem, Deadline] = {}

    def begin(self, item: WorkItem) -> Deadline:
        """Called just before the handler."""
        deadline = self._running[item] = Deadline(seconds() + self.limit_seconds)
        return deadline

    def end(self, item: WorkItem) -> bool:
        """Called when the handler has ended, or is given up. False: the other came first."""
        return self._running.pop(item, None) is not None

    async def watch(self, on_late: Callable[[WorkItem, Deadline], None]) -> None:
        """Without end: call `on_late` with every handler that is late, until it is taken out."""
        while True:
            now = seconds()
            # A handler that begins after this look is not due before `now + limit_seconds`.
            check_at = now + self.limit_seconds
            for item, deadline in self._running.copy().items():
                if deadline.at > now:
                    check_at = min(check_at, deadline.at)
                    continue
                on_late(item, deadline)
                check_at = min(check_at, now + _LATE_CHECK_SECONDS)
            await asyncio.sleep(max(check_at - seconds(), TIMEOUT_SECONDS_MIN))

    def failure(self, item: WorkItem, stack: traceback.StackSummary, *, more: str = "") -> Failed:
        """The outcome of a handler that is late, with the calls that it was in."""
        error = HandlerTimeout(self.limit_seconds)
        if self._on_error is not None:
            self._on_error(item, error)
        told = headline(error)
        return failed_with(f"{told}; {more}" if more else told, stack, is_late=True)


def stack_of_thread(thread_id: int) -> traceback.StackSummary:
    """The calls that a thread is in now, from the handler on."""
    frame = sys._current_frames().get(thread_id)
    if frame is None:
        return traceback.StackSummary()
    frames = traceback.extract_stack(frame)
    ours = [at for at, each in enumerate(frames) if each.filename.startswith(WORKER_FOLDER)]
    return traceback.StackSummary.from_list(frames[ours[-1] + 1 if ours else 0 :])
