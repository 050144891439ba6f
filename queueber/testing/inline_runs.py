"""Runs jobs in line: every attempt of one, then what its end lets go."""

from collections import deque
from collections.abc import Callable, Sequence

from queueber.testing.handler_calls import HandlerCalls
from queueber.testing.inline_job import InlineJob
from queueber.testing.inline_results import within
from queueber.worker.handlers.kinds import JobItem


class InlineRuns:
    def __init__(
        self,
        calls: HandlerCalls,
        item_of: Callable[[InlineJob], JobItem],
        on_end: Callable[[InlineJob], list[InlineJob]],
    ) -> None:
        """`on_end` returns the jobs that begin because this one has ended."""
        self._calls = calls
        self._item_of = item_of
        self._on_end = on_end

    def run(self, jobs: Sequence[InlineJob]) -> None:
        left = deque(jobs)
        while left:
            job = left.popleft()
            while (attempt := self._next_attempt(job)) is not None:
                with within(job):
                    ended = self._calls.call(attempt)
                job.note(attempt, ended)
            left += self._on_end(job)

    async def run_async(self, jobs: Sequence[InlineJob]) -> None:
        """Coroutines of asyncio run on the loop that awaits this."""
        left = deque(jobs)
        while left:
            job = left.popleft()
            while (attempt := self._next_attempt(job)) is not None:
                with within(job):
                    if self._calls.is_awaited(attempt):
                        ended = await self._calls.call_async(attempt)
                    else:
                        ended = self._calls.call(attempt)
                job.note(attempt, ended)
            left += self._on_end(job)

    def _next_attempt(self, job: InlineJob) -> JobItem | None:
        """The item as its handler gets it next; None: the job is done, or failed for good."""
        if job.is_over:
            return None
        job.attempts += 1
        attempt = self._item_of(job)
        attempt.attempt = attempt.deliveries = job.attempts
        return attempt
