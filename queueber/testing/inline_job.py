"""One job in line: what it has of its own, its attempts so far, and how it ended."""

from concurrent.futures import Future
from dataclasses import dataclass, field

from queueber.client import Item
from queueber.client.transport.futures import answer_future
from queueber.jobs.result_readers import JobDied
from queueber.testing.handler_calls import Ended
from queueber.worker.handlers.kinds import JobItem
from queueber.worker.handlers.work_item import Failed

Batch = tuple[str, str]
"""Its queue and its name."""
Awaited = bytes | Batch
"""What a job waits for: the id of a job, or a batch."""


@dataclass(slots=True, eq=False)
class InlineJob:
    """A job that was enqueued in line."""

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
    """None if the job failed for the last time, or has not ended."""
    error: str = ""
    """That of the last attempt that failed, as it would be stored."""
    raised: BaseException | None = None
    """What that attempt raised."""
    item: Item = field(kw_only=True, repr=False)
    waits: set[Awaited] = field(default_factory=set, repr=False)
    """What has to end before it begins."""
    has_ended: bool = False
    thread_id: int = 0
    """The thread that runs it, from when it waits for nothing; 0: none yet."""
    _futures: "list[Future[bytes]]" = field(default_factory=list, repr=False)

    def died(self) -> JobDied:
        died = JobDied(self.name, self.error, self.attempts)
        died.__cause__ = self.raised
        return died

    def die_of(self, error: str) -> None:
        """What it waited for is dead. That counts as an attempt."""
        self.attempts, self.error = 1, error

    @property
    def is_done(self) -> bool:
        return self.result is not None

    @property
    def is_over(self) -> bool:
        """Whether there is nothing left to try."""
        return self.is_done or self.attempts >= self.attempts_max

    def note(self, item: JobItem, ended: Ended) -> None:
        """How an attempt ended. Ctrl-C is for whoever runs the test, not for the job."""
        if isinstance(ended.error, KeyboardInterrupt):
            raise ended.error
        if not isinstance(ended.outcome, Failed):
            self.result = ended.outcome
            return
        self.error, self.raised = ended.outcome.error, ended.error
        if not self.is_over:
            pause = ended.outcome.delay
            if pause is None and not item.has_backoff:
                pause = item.kind.delay_after(self.attempts)
            if pause is None and self.own_pauses:
                pause = self.own_pauses[min(self.attempts, len(self.own_pauses)) - 1]
            self.pauses.append(pause)

    def end(self) -> "list[Future[bytes]]":
        """Returns who waits for the result; `resolve` answers them."""
        self.has_ended = True
        waiting, self._futures = self._futures, []
        return waiting

    def wait(self, future: "Future[bytes]") -> None:
        self._futures.append(future)

    def resolve(self, future: "Future[bytes]") -> None:
        if self.result is not None:
            answer_future(future, self.result)
        elif not future.done():
            future.set_exception(self.died())
