"""The time limit of handlers: which ones run, until when each may, and the error of an overrun.

Handlers begin and end on any thread; the loop of the pool looks for those that are late. Whoever
takes an item out of the table first reports it: the handler that ended, or the one who gave it up.
"""

import asyncio
import math
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from queueber.clock import seconds
from queueber.worker.handlers.error_text import OWN_FOLDERS, headline
from queueber.worker.handlers.shared_deadlines import SharedDeadlines
from queueber.worker.handlers.work_item import (
    Duration,
    Failed,
    OnError,
    WorkItem,
    failed_with,
    to_seconds,
)

TIMEOUT_SECONDS_MIN = 0.01
"""The shortest limit: handlers are not looked at more often."""

_LATE_CHECK_SECONDS = 0.1
"""How often a handler that was cancelled is looked at, until it has ended."""

_OWN_CHECK_SECONDS = 0.25
"""The same of all handlers, if items may have limits of their own, which nobody knows before."""


class HandlerTimeout(Exception):
    """A handler ran longer than its `timeout`: that of its item, else of its kind of job, else of
    its worker. The item fails with this error."""

    def __init__(self, limit_seconds: float) -> None:
        super().__init__(f"the handler ran longer than {limit_seconds:g} s (its timeout)")
        self.limit_seconds = limit_seconds

    def __reduce__(self) -> tuple[Any, ...]:
        """It may go to another process, as from a pool of them."""
        return type(self), (self.limit_seconds,)


class HandlersStuck(RuntimeError):
    """Every handler of a worker ran longer than its timeout and did not end: none is left.

    Not a `QueueberError`: no call failed.
    """


@dataclass(slots=True, eq=False)
class Deadline:
    """Until when one handler may run."""

    at: float
    limit_seconds: float
    cancelled_at: float | None = None
    """When it was cancelled because it was late."""
    slot: int | None = None
    """Where `at` is told to the parent of a worker process."""


def to_timeout(timeout: Duration | None) -> float | None:
    return None if timeout is None else to_seconds("timeout", timeout, TIMEOUT_SECONDS_MIN)


class TimeLimit:
    """Of all handlers of a worker."""

    def __init__(
        self,
        limit_seconds: float | None,
        on_error: OnError | None = None,
        *,
        own_limit: Callable[[Any], float | None] | None = None,
        shared: SharedDeadlines | None = None,
    ) -> None:
        """`own_limit` is asked for the limit of each item; None: `limit_seconds`, if there is.
        `shared` tells the parent of a worker process."""
        self._limit_seconds = limit_seconds
        self._own_limit = own_limit
        self.is_for: Callable[[Any], object] = own_limit or (lambda _: True)
        """True for an item with a limit: one without costs next to nothing."""
        if limit_seconds is not None:
            self.is_for = lambda _: True
        self._on_error = on_error
        self._shared = shared
        self._running: dict[WorkItem, Deadline] = {}

    def begin(self, item: WorkItem) -> Deadline:
        """Called just before the handler."""
        limit = None if self._own_limit is None else self._own_limit(item)
        if limit is None:
            limit = self._limit_seconds
        assert limit is not None
        deadline = Deadline(seconds() + limit, limit)
        if self._shared is not None:
            deadline.slot = self._shared.begin(deadline.at)
        self._running[item] = deadline
        return deadline

    def end(self, item: WorkItem, *, is_given_up: bool = False) -> bool:
        """Called when the handler has ended, or is given up. False: the other came first."""
        deadline = self._running.pop(item, None)
        if deadline is None:
            return False
        # One that is given up may still take hold of the interpreter, until its process ends.
        if deadline.slot is not None and self._shared is not None and not is_given_up:
            self._shared.end(deadline.slot)
        return True

    def time_left(self) -> float:
        """In how many seconds the last of the handlers that have a limit has to end."""
        return max((each.at for each in self._running.copy().values()), default=0) - seconds()

    def late(self, item: WorkItem) -> Deadline | None:
        """The deadline of an item whose handler still runs, though that is over."""
        deadline = self._running.get(item)
        return deadline if deadline is not None and deadline.at < seconds() else None

    async def watch(self, on_late: Callable[[WorkItem, Deadline], None]) -> None:
        """Without end: call `on_late` with every handler that is late, until it is taken out."""
        # A handler that begins after a look is not late before so many seconds have passed.
        look_seconds = self._limit_seconds or math.inf
        if self._own_limit is not None:
            look_seconds = min(look_seconds, _OWN_CHECK_SECONDS)
        while True:
            now = seconds()
            check_at = now + look_seconds
            for item, deadline in self._running.copy().items():
                if deadline.at > now:
                    check_at = min(check_at, deadline.at)
                    continue
                on_late(item, deadline)
                check_at = min(check_at, now + _LATE_CHECK_SECONDS)
            await asyncio.sleep(max(check_at - seconds(), TIMEOUT_SECONDS_MIN))

    def failure(
        self, item: WorkItem, deadline: Deadline, stack: traceback.StackSummary, *, more: str = ""
    ) -> Failed:
        """The outcome of a handler that is late, with the calls that it was in."""
        error = HandlerTimeout(deadline.limit_seconds)
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
    ours = [at for at, each in enumerate(frames) if each.filename.startswith(OWN_FOLDERS)]
    return traceback.StackSummary.from_list(frames[ours[-1] + 1 if ours else 0 :])
