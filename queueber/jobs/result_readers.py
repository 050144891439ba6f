"""Finds the results of jobs in the log of their queue, for all handles of a program at once.

A log of results has no index by id. It is ordered by time, and an id has the time at which its item
was added. So the log is bisected once for the first result that may be of interest, and read from
there on, each result once, however many handles wait. A thread does so while any of them does.
"""

import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any
from weakref import WeakValueDictionary

from queueber.client import Client, Queue
from queueber.client.transport.futures import answer_future, fail_future
from queueber.clock import seconds
from queueber.errors import OutOfRange
from queueber.ids import made_at_ms
from queueber.limits import SECOND_MS
from queueber.model import Column, ItemState

RESULTS_SCANNED_MAX = 100_000
"""How many results are read at most to find one that may be there already."""

_PAGE = 1000
_WAIT_SECONDS = 1.0
"""How long one read waits for results."""
_CHECK_SECONDS = 1.0
_CHECKS_MAX = 100
"""Handles whose items are looked for in one check: in turn, if there are more."""
_CLOCK_SLACK_MS = SECOND_MS
"""The log is ordered by the server's clock, which may be set back a little."""
_WITHOUT = (Column.KEYS, Column.BATCHES, Column.ATTRIBUTES)


class JobDied(Exception):
    """The job is a dead letter: it failed for the last time, and `error` is that of its last
    attempt; or it expired, and `error` says that.

    Not a `QueueberError`: no call failed.
    """

    def __init__(self, job: str, error: str, attempts: int) -> None:
        told = f"failed for the last time, at attempt {attempts}" if attempts else "died"
        super().__init__(f"{job} {told}: {error}")
        self.job = job
        self.error = error
        self.attempts = attempts

    def __reduce__(self) -> tuple[Any, ...]:
        """It may go to another process, as from a pool of them."""
        return type(self), (self.job, self.error, self.attempts)


class JobGone(Exception):
    """There will be no result: the job is not in its queue any more, and has none. It was cancelled
    or removed, its result was deleted, or its worker keeps no results.

    Not a `QueueberError`: no call failed.
    """

    def __init__(self, job: str) -> None:
        super().__init__(
            f"{job} is not in its queue and has no result: it was cancelled or removed, its result "
            "was deleted, or its worker keeps none"
        )
        self.job = job

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.job,)


class Expected:
    """The result that handles of one item wait for. A `QueueResults` sets it."""

    def __init__(self, job: str, item_id: bytes, *, is_ahead: bool) -> None:
        self.job = job
        self.id = item_id
        self.is_ahead = is_ahead
        """If there is a result, it is at an offset that was not read yet."""
        self.outcome: bytes | None = None
        """The result, once it was read."""
        self.futures: list[Future[bytes]] = []


class ResultReaders:
    """One reader for each queue that handles were made of."""

    def __init__(self, client: Callable[[], Client]) -> None:
        self._client = client
        self._lock = threading.Lock()
        self._readers: dict[str, QueueResults] = {}

    def of(self, queue: str) -> "QueueResults":
        with self._lock:
            if queue not in self._readers:
                self._readers[queue] = QueueResults(lambda: self._client().queue(queue))
            return self._readers[queue]


class QueueResults:
    def __init__(self, queue: Callable[[], Queue]) -> None:
        self._queue = queue
        self._lock = threading.Lock()
        self._expected: WeakValueDictionary[bytes, Expected] = WeakValueDictionary()
        self._waited: dict[bytes, Expected] = {}
        """Those that somebody waits for."""
        self._thread: threading.Thread | None = None
        self._checked_at = 0.0
        self.offset: int | None = None
        """The next result to read; None: nobody has waited yet."""

    def expect(self, job: str, item_id: bytes, mark: int | None) -> Expected:
        """`mark` is the `offset` from before the add; None: the job may have been done before."""
        with self._lock:
            expected = self._expected.get(item_id)
            if expected is None:
                # If nothing was read since before the add, the result is still to be read.
                is_ahead = mark is not None and mark == self.offset
                expected = self._expected[item_id] = Expected(job, item_id, is_ahead=is_ahead)
            return expected

    def wait(self, expected: Expected) -> "Future[bytes]":
        """Resolved by the reader; whoever waits calls `stop_waiting` at the end."""
        future: Future[bytes] = Future()
        with self._lock:
            if expected.outcome is not None:
                _resolve(future, expected.outcome)
                return future
            expected.futures.append(future)
            self._waited[expected.id] = expected
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._run, name="queueber-results", daemon=True
                )
                self._thread.start()
        return future

    def stop_waiting(self, expected: Expected, future: "Future[bytes]") -> None:
        with self._lock:
            if future in expected.futures:
                expected.futures.remove(future)
            if not expected.futures:
                self._waited.pop(expected.id, None)

    # --- on the thread ----------------------------------------------------------------------------

    def _run(self) -> None:
        while True:
            with self._lock:
                waited = list(self._waited.values())
                if not waited:
                    self._thread = None
                    return
            try:
                self._read(self._queue(), waited)
            except Exception as error:  # noqa: BLE001  whoever waits gets it
                with self._lock:
                    for each in waited:
                        self._end_waiting(each, error)

    def _read(self, queue: Queue, waited: list[Expected]) -> None:
        behind = [each for each in waited if not each.is_ahead]
        if behind:
            self._read_behind(queue, behind)
        if self.offset is None:
            return
        self._read_page(queue, self.offset, wait=_WAIT_SECONDS)
        if seconds() > self._checked_at + _CHECK_SECONDS:
            self._checked_at = seconds()
            for each in self._next_to_check():
                self._check(queue, each)

    def _read_behind(self, queue: Queue, behind: list[Expected]) -> None:
        """Read from the time on at which the first of these was added, up to where others are."""
        log = queue.results_stats()
        end = log.next_offset if self.offset is None else self.offset
        left = deque(sorted(behind, key=lambda one: one.id))
        while left:
            start = _first_since(queue, log.first_offset, end, made_at_ms(left[0].id))
            if end - start <= RESULTS_SCANNED_MAX:
                break
            with self._lock:
                self._end_waiting(
                    left.popleft(),
                    OutOfRange(
                        f"more than {RESULTS_SCANNED_MAX} results came since this job was "
                        "enqueued; read them in order, with a reader of the queue's results"
                    ),
                )
        else:
            return
        if self.offset is None:
            # All is ahead now, and read with what comes.
            self.offset = start
        else:
            while start < end:
                start = self._read_page(queue, start, before=end)
        with self._lock:
            for each in left:
                each.is_ahead = True

    def _read_page(
        self, queue: Queue, offset: int, *, before: int | None = None, wait: float = 0
    ) -> int:
        """Hand out the results of a page; returns where the next one begins."""
        page = queue.read_columns(offset, limit=_PAGE, before=before, wait=wait, without=_WITHOUT)
        with self._lock:
            for item_id, result in zip(page.ids, page.results, strict=True):
                expected = self._expected.get(item_id)
                if expected is not None:
                    self._end(expected, bytes(result))
            if before is None:
                self.offset = page.next_offset
        return max(page.next_offset, offset + 1) if before is not None else page.next_offset

    def _next_to_check(self) -> list[Expected]:
        """Those that were not looked for the longest."""
        with self._lock:
            turn = list(self._waited.values())[:_CHECKS_MAX]
            for each in turn:
                self._waited[each.id] = self._waited.pop(each.id)
        return turn

    def _check(self, queue: Queue, expected: Expected) -> None:
        """Whether the item died, or is gone."""
        try:
            found = queue.find(expected.id)
        except OutOfRange as error:
            outcome: bytes | Exception = error
        else:
            if found is None:
                outcome = JobGone(expected.job)
            elif found.result is not None:
                outcome = found.result.result
            elif found.item is not None and found.state is ItemState.DEAD:
                item = found.item
                outcome = JobDied(expected.job, item.last_error or item.reason, item.attempts)
            else:
                return
        with self._lock:
            if isinstance(outcome, bytes):
                self._end(expected, outcome)
            else:
                # Not kept: somebody may redrive it.
                self._end_waiting(expected, outcome)

    def _end(self, expected: Expected, result: bytes) -> None:
        expected.outcome = result
        self._end_waiting(expected, result)

    def _end_waiting(self, expected: Expected, outcome: bytes | Exception) -> None:
        for future in expected.futures:
            _resolve(future, outcome)
        expected.futures.clear()
        self._waited.pop(expected.id, None)


def _first_since(queue: Queue, low: int, high: int, since_ms: int) -> int:
    """The first offset of results that came since then; about twenty short reads for a million."""
    since_ms -= _CLOCK_SLACK_MS
    while low < high:
        middle = (low + high) // 2
        page = queue.read_columns(middle, limit=1, before=high, without=(*_WITHOUT, Column.RESULTS))
        if page.offsets and page.completed_at_ms[0] < since_ms:
            low = page.offsets[0] + 1
        else:
            high = middle
    return low


def _resolve(future: "Future[bytes]", outcome: bytes | Exception) -> None:
    if isinstance(outcome, Exception):
        fail_future(future, outcome)
    else:
        answer_future(future, outcome)
