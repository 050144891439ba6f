"""What follows what in line: jobs that wait for others, batches, and the callbacks of batches.

The rules and the errors are those of a server (docs/workflows.md). There is nothing to sweep: what
an end lets go is run at once, by whoever ran the job that ended.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from queueber.db.records.keys import DIGEST_BYTES
from queueber.db.records.remembered import DIGEST_MODULUS, ids_digest
from queueber.errors import FailedPrecondition, InvalidArgument, NotFound
from queueber.model import Callback, NewItems, Receipt
from queueber.testing.inline_job import Awaited, Batch, InlineJob


@dataclass(slots=True, eq=False)
class InlineBatch:
    queue: str
    name: str
    jobs: list[InlineJob] = field(default_factory=list)
    callback: Callback | None = None
    created_at_ms: int = 0
    """When it got its callback."""
    item_id: bytes = b""
    """The job that the callback was; empty: it has not become due."""

    @property
    def is_complete(self) -> bool:
        """Whether all of its jobs have ended; that of a batch without jobs is no completion."""
        return bool(self.jobs) and all(job.has_ended for job in self.jobs)

    def receipt(self) -> Receipt:
        ended = [job for job in self.jobs if job.has_ended]
        done = [job for job in ended if job.is_done]
        dead = [job for job in ended if not job.is_done]
        return Receipt(
            self.name,
            len(self.jobs),
            len(done),
            len(dead),
            len(self.jobs) - len(ended),
            _digest(self.jobs),
            _digest(done),
            _digest(dead),
            complete=len(ended) == len(self.jobs),
        )


def _digest(jobs: Iterable[InlineJob]) -> bytes:
    total = sum(ids_digest(job.id, 1) for job in jobs)
    return (total % DIGEST_MODULUS).to_bytes(DIGEST_BYTES)


@dataclass(slots=True)
class LetGo:
    """What an end lets go."""

    jobs: list[InlineJob] = field(default_factory=list)
    """They wait for nothing more."""
    died: list[InlineJob] = field(default_factory=list)
    """They have waited for what is dead."""
    batches: list[InlineBatch] = field(default_factory=list)
    """They are complete, and their callbacks are to be added."""


class InlineFlow:
    """Of all queues. Whoever calls holds the lock of the jobs."""

    def __init__(self) -> None:
        self.jobs: dict[bytes, InlineJob] = {}
        self._last_ids: dict[str, bytes] = {}
        self._batches: dict[Batch, InlineBatch] = {}
        self._waiting: dict[Awaited, list[InlineJob]] = {}

    # --- batches ----------------------------------------------------------------------------------

    def batch(self, queue: str, name: str) -> InlineBatch:
        found = self._batches.get((queue, name))
        if found is None:
            raise NotFound(
                f"batch: queue {queue!r} knows no batch {name!r}; it begins with its first add, "
                "and is forgotten a while after its end (batch_keep), or by a call"
            )
        return found

    def open(self, queue: str, name: str) -> InlineBatch:
        """It begins now if it is new."""
        return self._batches.setdefault((queue, name), InlineBatch(queue, name))

    def give(self, batch: InlineBatch, callback: Callback, now_ms: int) -> bool:
        """Give a batch its callback, and return whether that is to be added now."""
        if batch.callback == callback:
            return False
        if batch.item_id:
            raise FailedPrecondition(
                f"batch: the callback of {batch.name!r} of queue {batch.queue!r} has added item "
                f"{batch.item_id.hex()}; use another batch, or forget this one first"
            )
        if not batch.jobs:
            raise FailedPrecondition(
                f"batch: {batch.name!r} of queue {batch.queue!r} has no items; add them first"
            )
        batch.callback, batch.created_at_ms = callback, now_ms
        return batch.is_complete

    # --- waiting ----------------------------------------------------------------------------------

    def awaited(self, queue: str, new: NewItems) -> tuple[set[Awaited], list[bytes]]:
        """What new jobs have to wait for, and which jobs among that are dead by now."""
        waits: set[Awaited] = set()
        dead: list[bytes] = []
        for item_id in dict.fromkeys(new.after):
            if item_id > self._last_ids.get(queue, b""):
                raise NotFound(
                    f"after: queue {queue!r} has never had an item {item_id.hex()}; an item waits "
                    "for items of its own queue"
                )
            job = self.jobs.get(item_id)
            if job is not None and job.queue == queue and not job.is_done:
                waits.add(item_id)
                dead += [item_id] if job.has_ended else []
        if new.after_batch:
            waits |= self._awaited_batch(queue, new)
        return waits, dead

    def _awaited_batch(self, queue: str, new: NewItems) -> set[Awaited]:
        name = new.after_batch
        if name == new.batch:
            raise InvalidArgument(f"after_batch: {name!r} is the batch of the items themselves")
        batch = self.batch(queue, name)
        if not batch.jobs:
            raise FailedPrecondition(
                f"after_batch: {name!r} of queue {queue!r} has no items; add them first"
            )
        return set() if batch.is_complete else {(queue, name)}

    def add(self, job: InlineJob, waits: set[Awaited], batch: str) -> None:
        self.jobs[job.id] = job
        self._last_ids[job.queue] = job.id
        if batch:
            self.open(job.queue, batch).jobs.append(job)
        job.waits = set(waits)
        for what in waits:
            self._waiting.setdefault(what, []).append(job)

    def ended(self, job: InlineJob) -> LetGo:
        """The job is done or dead."""
        let_go = LetGo()
        waiting = self._waiting.pop(job.id, [])
        if not job.is_done:
            let_go.died = [each for each in waiting if not each.has_ended]
            for each in let_go.died:
                each.die_of(came_after(job.id))
        else:
            let_go.jobs = _free(waiting, job.id)
        batch = self._batches.get((job.queue, job.item.batch))
        if batch is not None and batch.is_complete:
            what = batch.queue, batch.name
            let_go.jobs += _free(self._waiting.pop(what, []), what)
            if batch.callback is not None and not batch.item_id:
                let_go.batches.append(batch)
        return let_go

    def before(self, job: InlineJob) -> list[InlineJob]:
        """Those that wait for nothing and have to end before this one can; or this one."""
        seen, left, found = {job}, [job], []
        while left:
            each = left.pop()
            if not each.waits:
                found.append(each)
            for what in each.waits:
                awaited = [self.jobs[what]] if isinstance(what, bytes) else self._batches[what].jobs
                more = [one for one in awaited if not one.has_ended and one not in seen]
                seen.update(more)
                left += more
        return found


def came_after(item_id: bytes) -> str:
    return f"it was to come after item {item_id.hex()}, which died or was cancelled"


def _free(waiting: Iterable[InlineJob], what: Awaited) -> list[InlineJob]:
    """These wait no longer for it; returns those that wait for nothing more."""
    free: list[InlineJob] = []
    for job in waiting:
        job.waits.discard(what)
        if not job.waits and not job.has_ended:
            free.append(job)
    return free
