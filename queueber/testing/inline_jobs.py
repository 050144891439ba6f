"""The jobs that run in line, from their `enqueue` to their end: see `inline_block.py`."""

import threading
from collections.abc import Sequence

from queueber.client import Item
from queueber.client.api.item import NO_ATTRIBUTES
from queueber.errors import InvalidArgument, NotFound
from queueber.jobs.app import App
from queueber.limits import SECOND_MS
from queueber.model import (
    NO_OPTIONS,
    Callback,
    CallbackInfo,
    NewItems,
    Receipt,
    receipt_attributes,
)
from queueber.testing.handler_calls import HandlerCalls, clock, ids
from queueber.testing.inline_flow import InlineBatch, InlineFlow, came_after
from queueber.testing.inline_job import InlineJob
from queueber.testing.inline_results import InlineResults
from queueber.testing.inline_runs import InlineRuns
from queueber.worker.handlers.kinds import JobItem
from queueber.worker.handlers.work_item import HeldLease


class InlineJobs:
    """What ran in line so far, in the order in which the jobs ended."""

    def __init__(self, app: App, calls: HandlerCalls, attempts_max: int) -> None:
        self._app = app
        self._attempts_max = attempts_max
        self._lock = threading.RLock()
        self._flow = InlineFlow()
        self._runs = InlineRuns(calls, lambda job: self._item(job.queue, job.item), self._ran)
        self.results = InlineResults(self._flow, self._lock)
        self._by_key: dict[tuple[str, str], bytes] = {}
        self.ran: list[InlineJob] = []

    @property
    def dead(self) -> list[InlineJob]:
        """Those that failed for the last time, and those that never ran, because they were to come
        after one that is dead."""
        with self._lock:
            return [job for job in self._flow.jobs.values() if job.has_ended and not job.is_done]

    # --- what queues do ---------------------------------------------------------------------------

    def add(self, queue: str, new: NewItems) -> tuple[list[bytes], list[InlineJob]]:
        """The ids of the jobs, and those that are to be run now."""
        found: list[bytes] = []
        begun: list[InlineJob] = []
        with self._lock:
            for at in range(len(new.contents)):
                key = new.keys[at] if new.keys else ""
                item_id = self._by_key.get((queue, key)) if key else None
                if item_id is None:
                    job, may_begin = self._new(queue, new, at, key)
                    item_id = job.id
                    begun += may_begin
                elif new.batch:
                    self._flow.open(queue, new.batch)
                found.append(item_id)
        return found, begun

    def run(self, jobs: Sequence[InlineJob]) -> None:
        """Run these, and all that begins when they end."""
        self._runs.run(jobs)

    async def run_async(self, jobs: Sequence[InlineJob]) -> None:
        await self._runs.run_async(jobs)

    def give(self, queue: str, batch: str, callback: Callback) -> list[InlineJob]:
        with self._lock:
            found = self._flow.batch(queue, batch)
            if self._flow.give(found, callback, clock.now_ms()):
                return self._add_callback(found)
        return []

    def callback(self, queue: str, batch: str) -> CallbackInfo:
        with self._lock:
            found = self._flow.batch(queue, batch)
            if found.callback is None:
                raise NotFound(
                    f"batch: {batch!r} of queue {queue!r} has no callback; when_complete gives it "
                    "one"
                )
            return CallbackInfo(batch, found.callback.to, found.created_at_ms, found.item_id)

    def receipt(self, queue: str, batch: str) -> Receipt:
        with self._lock:
            return self._flow.batch(queue, batch).receipt()

    # --- beginning, with the lock -----------------------------------------------------------------

    def _new(
        self, queue: str, new: NewItems, at: int, key: str
    ) -> tuple[InlineJob, list[InlineJob]]:
        """A new job, and what may begin: it itself, unless it waits."""
        waits, dead = self._flow.awaited(queue, new)
        (item_id,) = ids.mint(1, clock.now_ms())
        contents = new.contents[at]
        attributes = new.attributes[at] if new.attributes else NO_ATTRIBUTES
        own = new.options[at] if new.options else NO_OPTIONS
        timeout = own.timeout_ms / SECOND_MS if own.timeout_ms else None
        item = Item(item_id, contents, 1, key, attributes, new.batch, timeout=timeout)
        job = InlineJob(
            item_id,
            self._item(queue, item).kind.name,
            queue,
            contents,
            own.attempts_max or self._attempts_max,  # 0 is none at all, and would not end
            tuple(ms / SECOND_MS for ms in own.backoff_ms),
            item=item,
        )
        if key:
            self._by_key[queue, key] = item_id
        self._flow.add(job, waits, new.batch)
        if dead:
            job.die_of(came_after(dead[0]))
            return job, self._end(job)
        return job, self._begin([] if waits else [job])

    def _begin(self, jobs: list[InlineJob]) -> list[InlineJob]:
        for job in jobs:
            job.thread_id = threading.get_ident()
        return jobs

    def _item(self, queue: str, item: Item) -> JobItem:
        attempt = JobItem(item, HeldLease(b"", 1, 0.0, source=queue))
        kind = self._app.kind_of(attempt)
        if isinstance(kind, str):
            raise InvalidArgument(
                f"contents: the app has no job {kind!r}; in line there is no other worker that "
                "might know it"
            )
        attempt.kind = kind
        return attempt

    def _add_callback(self, batch: InlineBatch) -> list[InlineJob]:
        assert batch.callback is not None
        given = batch.callback
        attributes = {**given.attributes, **receipt_attributes(batch.queue, batch.receipt())}
        new = NewItems(
            [given.contents],
            keys=[given.key],
            attributes=[attributes],
            options=[given.options],
        )
        (batch.item_id,), begun = self.add(given.to, new)
        return begun

    # --- ending -----------------------------------------------------------------------------------

    def _ran(self, job: InlineJob) -> list[InlineJob]:
        self.ran.append(job)
        return self._end(job)

    def _end(self, job: InlineJob) -> list[InlineJob]:
        """The job is done or dead; returns what begins therefore."""
        begun: list[InlineJob] = []
        with self._lock:
            ended = [job]
            for each in ended:
                if each.has_ended:
                    continue  # it waited for two that died
                waiting = each.end()
                let_go = self._flow.ended(each)
                ended += let_go.died
                begun += self._begin(let_go.jobs)
                for batch in let_go.batches:
                    begun += self._add_callback(batch)
                for future in waiting:
                    each.resolve(future)
        return begun
