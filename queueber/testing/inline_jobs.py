"""Jobs in line: within the block of `inline`, `app.enqueue` runs the job at once, in this thread.

What goes through an app stays as it is (arguments are checked, encoded and decoded, middleware and
results too); in place of a server and a worker there are an `InlineQueue` and its results.
"""

import asyncio
import contextlib
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from queueber.client import Item
from queueber.client.api.item import NO_ATTRIBUTES
from queueber.client.arguments.new_items import to_new_items
from queueber.client.transport.futures import answer_future, fail_future
from queueber.errors import NotFound
from queueber.jobs.app import App
from queueber.jobs.result_readers import Expected, JobDied
from queueber.limits import SECOND_MS
from queueber.model import NO_OPTIONS, NewItems, QueueSettings
from queueber.testing.handler_calls import (
    Ended,
    HandlerCalls,
    check_attempts,
    clock,
    ids,
    inline_settings,
)
from queueber.worker.handlers.kinds import JobItem
from queueber.worker.handlers.middleware import Middleware
from queueber.worker.handlers.work_item import Failed, HeldLease
from queueber.worker.worker_settings import LoopName

ATTEMPTS_MAX = QueueSettings().attempts_max


@dataclass(slots=True)
class InlineJob:
    """A job that ran in line."""

    id: bytes
    name: str
    queue: str
    contents: bytes
    attempts_max: int
    own_pauses: tuple[float, ...] = ()
    """What the item has of its own; the last one is for all later failures."""
    attempts: int = 0
    pauses: list[float | None] = field(default_factory=list)
    """The seconds that a server would have waited after each failed attempt but the last; None: as
    the settings of its queue say."""
    result: bytes | None = None
    """None if the job failed for the last time."""
    error: str = ""
    """That of the last attempt that failed, as it would be stored."""
    raised: BaseException | None = None
    """What that attempt raised."""

    def died(self) -> JobDied:
        died = JobDied(self.name, self.error, self.attempts)
        died.__cause__ = self.raised
        return died


class InlineJobs:
    """What ran in line so far, in the order in which the jobs ended."""

    def __init__(self, app: App, calls: HandlerCalls, attempts_max: int) -> None:
        self._app = app
        self._calls = calls
        self._attempts_max = attempts_max
        self._by_id: dict[bytes, InlineJob] = {}
        self._by_key: dict[tuple[str, str], bytes] = {}
        self.ran: list[InlineJob] = []

    # --- what the app takes for its client --------------------------------------------------------

    def queue(self, name: str) -> "InlineQueue":
        return InlineQueue(self, name)

    def close(self) -> None:
        pass

    def __getattr__(self, name: str) -> Any:
        raise _without_server("client", name)

    # --- what the app takes for its results -------------------------------------------------------

    def of(self, _queue: str) -> "InlineJobs":
        return self

    offset = None

    def expect(self, job: str, item_id: bytes, _mark: int | None) -> Expected:
        if item_id not in self._by_id:
            raise NotFound(f"no job {job} with the id {item_id.hex()} was enqueued in line")
        return Expected(job, item_id, is_ahead=False)

    def wait(self, expected: Expected) -> "Future[bytes]":
        future: Future[bytes] = Future()
        ran = self._by_id[expected.id]
        if ran.result is not None:
            answer_future(future, ran.result)
        elif ran.error:
            future.set_exception(ran.died())
        return future

    def stop_waiting(self, expected: Expected, future: "Future[bytes]") -> None:
        pass

    # --- running ----------------------------------------------------------------------------------

    def earlier(self, queue: str, new: NewItems) -> bytes | None:
        """The job that has the key already."""
        return self._by_key.get((queue, new.keys[0])) if new.keys else None

    def begin(self, queue: str, new: NewItems) -> tuple[InlineJob, Item]:
        (item_id,) = ids.mint(1, clock.now_ms())
        contents = new.contents[0]
        key = new.keys[0] if new.keys else ""
        attributes = new.attributes[0] if new.attributes else NO_ATTRIBUTES
        own = new.options[0] if new.options else NO_OPTIONS
        limit = own.attempts_max or self._attempts_max  # 0 is none at all, and would not end
        pauses = tuple(ms / SECOND_MS for ms in own.backoff_ms)
        job = self._by_id[item_id] = InlineJob(item_id, "", queue, contents, limit, pauses)
        if key:
            self._by_key[queue, key] = item_id
        return job, Item(item_id, contents, 1, key, attributes, new.batch)

    def run(self, job: InlineJob, item: Item) -> None:
        while (attempt := self._next_attempt(job, item)) is not None:
            self._note(job, attempt, self._calls.call(attempt))
        self.ran.append(job)

    async def run_async(self, job: InlineJob, item: Item) -> None:
        while (attempt := self._next_attempt(job, item)) is not None:
            if self._calls.is_awaited(attempt):
                ended = await self._calls.call_async(attempt)
            else:
                ended = self._calls.call(attempt)
            self._note(job, attempt, ended)
        self.ran.append(job)

    def _next_attempt(self, job: InlineJob, item: Item) -> JobItem | None:
        """The item as its handler gets it next; None: the job is done, or failed for good."""
        if job.result is not None or job.attempts == job.attempts_max:
            return None
        job.attempts += 1
        attempt = JobItem(item, HeldLease(b"", 1, 0.0, source=job.queue))
        attempt.attempt = attempt.deliveries = job.attempts
        kind = self._app.kind_of(attempt)
        assert not isinstance(kind, str)  # the app has enqueued it
        attempt.kind = kind
        job.name = kind.name
        return attempt

    def _note(self, job: InlineJob, item: JobItem, ended: Ended) -> None:
        if not isinstance(ended.outcome, Failed):
            job.result = ended.outcome
            return
        job.error, job.raised = ended.outcome.error, ended.error
        if job.attempts < job.attempts_max:
            pause = ended.outcome.delay
            if pause is None and not item.has_backoff:
                pause = item.kind.delay_after(job.attempts)
            if pause is None and job.own_pauses:
                pause = job.own_pauses[min(job.attempts, len(job.own_pauses)) - 1]
            job.pauses.append(pause)


class InlineQueue:
    """As much of a queue as an app uses to enqueue."""

    def __init__(self, jobs: InlineJobs, name: str) -> None:
        self._jobs = jobs
        self.name = name

    def __getattr__(self, name: str) -> Any:
        raise _without_server("queue", name)

    def add(self, contents: bytes, **options: Any) -> list[bytes]:
        new = to_new_items(contents, **options)
        if (earlier := self._jobs.earlier(self.name, new)) is not None:
            return [earlier]
        job, item = self._jobs.begin(self.name, new)
        self._jobs.run(job, item)
        return [job.id]

    def add_soon(self, contents: bytes, **options: Any) -> "Future[list[bytes]]":
        """In asyncio the job runs on the loop that enqueues it."""
        future: Future[list[bytes]] = Future()
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            future.set_result(self.add(contents, **options))
            return future
        new = to_new_items(contents, **options)
        if (earlier := self._jobs.earlier(self.name, new)) is not None:
            future.set_result([earlier])
            return future
        job, item = self._jobs.begin(self.name, new)

        async def run() -> None:
            try:
                await self._jobs.run_async(job, item)
            except BaseException as error:
                fail_future(future, error)
                raise
            answer_future(future, [job.id])

        future.task = loop.create_task(run())  # type: ignore[attr-defined]  # else it is collected
        return future


def _without_server(what: str, name: str) -> AttributeError:
    return AttributeError(
        f"jobs run in line here, without a server, so the {what} of the app has no {name!r}; "
        "queueber.testing.running_server has all of it"
    )


@contextlib.contextmanager
def inline(
    app: App,
    *,
    attempts_max: int = ATTEMPTS_MAX,
    middleware: Sequence[Middleware | str] = (),
    loop: LoopName = "asyncio",
) -> Iterator[InlineJobs]:
    """Within this block `app.enqueue` runs the job at once, in this thread, without a server.

    Arguments and results are checked and encoded as in reality. A job that fails is tried again at
    once: `attempts_max` times in all, unless the job or the `enqueue` says how often. Then its
    handle raises `JobDied`, whose cause is what the job raised. `delay`, `at` and `expires` are
    checked and not waited for, a `key` stores one job, and time limits do not count. `middleware`
    and `loop` are as for `Worker`.
    """
    check_attempts("attempts_max", attempts_max)
    settings = inline_settings(
        app, weights=app.queue_weights(), loop=loop, middleware=tuple(middleware)
    )
    jobs = InlineJobs(app, HandlerCalls(settings), attempts_max)
    with app.sent_to(jobs):
        yield jobs
