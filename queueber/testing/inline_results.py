"""The results of jobs in line, for their handles: whoever waits gets one, or learns why there will
be none."""

import contextlib
import threading
from collections.abc import Collection, Iterator
from concurrent.futures import Future
from contextvars import ContextVar

from queueber.errors import NotFound
from queueber.jobs.result_readers import Expected
from queueber.testing.inline_flow import InlineFlow
from queueber.testing.inline_job import InlineJob

_around: ContextVar[tuple[InlineJob, ...]] = ContextVar("queueber_inline", default=())
"""The jobs whose calls this one is within."""


@contextlib.contextmanager
def within(job: InlineJob) -> Iterator[None]:
    """What is called in this block is called by the job."""
    token = _around.set((*_around.get(), job))
    try:
        yield
    finally:
        _around.reset(token)


class InlineResults:
    """As `ResultReaders` and `QueueResults` of the jobs of all queues."""

    offset = None

    def __init__(self, flow: InlineFlow, lock: threading.RLock) -> None:
        self._flow = flow
        self._lock = lock

    def of(self, _queue: str) -> "InlineResults":
        return self

    def expect(self, job: str, item_id: bytes, _mark: int | None) -> Expected:
        if item_id not in self._flow.jobs:
            raise NotFound(f"no job {job} with the id {item_id.hex()} was enqueued in line")
        return Expected(job, item_id, is_ahead=False)

    def wait(self, expected: Expected) -> "Future[bytes]":
        job = self._flow.jobs[expected.id]
        future = _Result(self, job)
        with self._lock:
            if job.has_ended:
                job.resolve(future)
            elif self._can_end(job, around=_around.get()):
                job.wait(future)
            else:
                future.set_exception(_no_result(job))
        return future

    def stop_waiting(self, expected: Expected, future: "Future[bytes]") -> None:
        pass

    def can_end_elsewhere(self, job: InlineJob) -> bool:
        """Whether other threads run all that has to end first."""
        with self._lock:
            return self._can_end(job, thread_id=threading.get_ident())

    def _can_end(
        self, job: InlineJob, *, around: Collection[InlineJob] = (), thread_id: int | None = None
    ) -> bool:
        before = self._flow.before(job)
        return bool(before) and not any(
            each in around or each.thread_id == thread_id for each in before
        )


class _Result(Future[bytes]):
    def __init__(self, results: InlineResults, job: InlineJob) -> None:
        super().__init__()
        self._results = results
        self._job = job

    def result(self, timeout: float | None = None) -> bytes:
        """Raises at once in the thread that runs the job: it cannot do that and wait."""
        if not self.done() and not self._results.can_end_elsewhere(self._job):
            raise _no_result(self._job)
        return super().result(timeout)


def _no_result(job: InlineJob) -> TimeoutError:
    return TimeoutError(
        f"{job.name} has no result and would get none while this waits for it: in line it ends "
        "after the job that waits"
    )
