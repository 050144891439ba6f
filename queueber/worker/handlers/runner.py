"""What all runners have in common: items wait, handlers run, outcomes go to the pool's loop."""

import contextlib
import traceback
from collections import deque
from collections.abc import Callable, Sequence
from queue import Empty, SimpleQueue

from queueber.worker.handlers.time_limit import Deadline, TimeLimit
from queueber.worker.handlers.work_item import Failed, HeldLease, Outcome, WorkItem

Finished = tuple[WorkItem, Outcome]
OnFinished = Callable[[Sequence[Finished]], None]

CANCEL_SECONDS_MAX = 1.0
"""How long cancelled handlers have to end. After that they are abandoned."""


class Runner:
    """Runs up to `concurrency` handlers at once; further items wait in the runner.

    The pool calls all methods on its loop, and the runner calls `on_finished` there.
    """

    can_cancel = True
    """Whether `cancel` ends handlers that are running."""

    def __init__(
        self,
        call_soon: Callable[..., object],
        on_finished: OnFinished,
        limit: TimeLimit | None,
    ) -> None:
        """`call_soon` of the pool's loop is what carries outcomes to it, many in one wakeup."""
        self._call_soon = call_soon
        self._on_finished = on_finished
        self._limit = limit
        self._stuck: dict[WorkItem, float] = {}
        """With each item the time limit of its handler, which still runs."""
        self._waiting: SimpleQueue[WorkItem | None] = SimpleQueue()
        self._finished: deque[Finished] = deque()
        self._is_wakeup_pending = False

    @property
    def waiting(self) -> int:
        """Items that no handler has begun."""
        return self._waiting.qsize()

    @property
    def stuck(self) -> int:
        """Handlers that ran longer than their time limit, cannot be ended, and still run.

        Their items were reported as failed.
        """
        return len(self._stuck)

    @property
    def stuck_slots(self) -> int:
        """How many of the `concurrency` slots these take up."""
        return self.stuck

    @property
    def stuck_limit(self) -> float:
        """The longest time limit of these."""
        return max(self._stuck.copy().values(), default=0)

    @property
    def time_left(self) -> float:
        """In how many seconds the last handler that has a time limit has to end; else 0."""
        return 0 if self._limit is None else max(self._limit.time_left(), 0)

    def put(self, items: Sequence[WorkItem]) -> None:
        """Handle these items, in order, as soon as handlers are free."""
        for item in items:
            self._waiting.put(item)

    def withdraw(self) -> list[WorkItem]:
        """Take back the items that no handler has begun."""
        return list(iter(self._next, None))

    def cancel(self, lease: HeldLease | None = None) -> None:
        """Cancel the handlers of one lease, or all of them."""
        raise NotImplementedError

    def cancel_at_once(self) -> None:
        """Cancel coroutines and begin none, from a signal handler: the pool has no turn before."""

    async def close(self) -> None:
        """End idle threads and tasks. Handlers that do not end in time are abandoned."""
        raise NotImplementedError

    async def watch_time(self) -> None:
        """Without end: stop the handlers that run longer than their time limit, if there is one."""
        if self._limit is not None:
            await self._limit.watch(self._stop_late)

    def blocked_by(self) -> tuple[WorkItem, Failed] | None:
        """From another thread, while the loop of the pool is blocked: the item of the handler that
        blocks it longer than it may run, as a failure."""
        return None

    def _stop_late(self, item: WorkItem, deadline: Deadline) -> None:
        """The handler is late: end it, or give it up."""
        raise NotImplementedError

    def _give_up(
        self, limit: TimeLimit, item: WorkItem, deadline: Deadline, stack: traceback.StackSummary
    ) -> None:
        """Fail the item of a handler that cannot be ended."""
        # Marked before it is taken out: a handler that ends now finds the mark, and removes it.
        self._stuck[item] = deadline.limit_seconds
        if limit.end(item, is_given_up=True):
            more = "it could not be ended, and still runs"
            self._finish(item, limit.failure(item, deadline, stack, more=more))
        else:
            self._stuck.pop(item, None)

    def _has_ended(self, limit: TimeLimit, item: WorkItem) -> None:
        """The handler has ended. If it was given up, its slot is free again."""
        if not limit.end(item):
            self._stuck.pop(item, None)

    def _next(self) -> WorkItem | None:
        """The next item that waits, if any."""
        try:
            return self._waiting.get_nowait()
        except Empty:
            return None

    def _finish(self, item: WorkItem, outcome: Outcome) -> None:
        self._finished.append((item, outcome))
        # `_report` clears the flag before it reads the outcomes, so none stays behind.
        if not self._is_wakeup_pending:
            self._is_wakeup_pending = True
            with contextlib.suppress(RuntimeError):  # the loop is closed: handler was abandoned
                self._call_soon(self._report)

    def _report(self) -> None:
        self._is_wakeup_pending = False
        finished = self._finished
        self._on_finished([finished.popleft() for _ in range(len(finished))])
