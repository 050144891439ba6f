"""What a pool reports about items of one lease: completed, failed or released."""

from abc import ABC, abstractmethod
from enum import Enum
from typing import Self

from queueber.model import FailOutcome
from queueber.worker.counters import Counters
from queueber.worker.handlers.handler_outcome import truncated
from queueber.worker.pool.work_queue import WorkQueue
from queueber.worker.work_item import HeldLease, WorkItem


class Verdict(Enum):
    ACCEPTED = "accepted"
    DIED = "accepted, and the item is a dead letter now"
    REFUSED = "refused: the lease does not hold the item any more"


_VERDICTS = {
    FailOutcome.RETRIED: Verdict.ACCEPTED,
    FailOutcome.DIED: Verdict.DIED,
    FailOutcome.REFUSED: Verdict.REFUSED,
}


class LeaseReport(ABC):
    """Items of one lease that ended in the same way. They are reported in one call."""

    def __init__(self, lease: HeldLease) -> None:
        self.lease = lease
        self.items: list[WorkItem] = []
        self.is_repeated = False
        """The connection broke when the report was sent before: the server may have it."""

    @abstractmethod
    async def send(self, queue: WorkQueue) -> list[Verdict]:
        """Tell the server, once."""

    @abstractmethod
    def count(self, counters: Counters, accepted: int, died: int) -> None:
        """Add what the server accepted to the counters."""

    @abstractmethod
    def part(self, step: slice) -> Self:
        """A report of some of the items."""

    def halves(self) -> "list[LeaseReport]":
        halves: list[LeaseReport] = [self.part(slice(0, None, 2)), self.part(slice(1, None, 2))]
        for half in halves:
            half.is_repeated = self.is_repeated
        return halves

    @property
    def ids(self) -> list[bytes]:
        return [item.id for item in self.items]


class Completion(LeaseReport):
    def __init__(self, lease: HeldLease) -> None:
        super().__init__(lease)
        self.results: list[bytes] = []

    def add(self, item: WorkItem, result: bytes) -> None:
        self.items.append(item)
        self.results.append(result)

    async def send(self, queue: WorkQueue) -> list[Verdict]:
        return _verdicts(await queue.complete(self.ids, self.results, lease=self.lease.id))

    def count(self, counters: Counters, accepted: int, died: int) -> None:
        counters.done += accepted

    def part(self, step: slice) -> Self:
        part = type(self)(self.lease)
        part.items, part.results = self.items[step], self.results[step]
        return part


class Failure(LeaseReport):
    """Failures with one delay; each has an error of its own."""

    def __init__(self, lease: HeldLease, delay: float | None) -> None:
        super().__init__(lease)
        self.delay = delay
        self.errors: list[str] = []

    def add(self, item: WorkItem, error: str) -> None:
        self.items.append(item)
        self.errors.append(truncated(error))

    async def send(self, queue: WorkQueue) -> list[Verdict]:
        outcomes = await queue.fail(self.ids, self.errors, lease=self.lease.id, delay=self.delay)
        return [_VERDICTS[outcome] for outcome in outcomes]

    def count(self, counters: Counters, accepted: int, died: int) -> None:
        counters.failed += accepted + died
        counters.died += died

    def part(self, step: slice) -> Self:
        part = type(self)(self.lease, self.delay)
        part.items, part.errors = self.items[step], self.errors[step]
        return part


class Release(LeaseReport):
    def add(self, item: WorkItem) -> None:
        self.items.append(item)

    async def send(self, queue: WorkQueue) -> list[Verdict]:
        return _verdicts(await queue.release(self.ids, lease=self.lease.id))

    def count(self, counters: Counters, accepted: int, died: int) -> None:
        counters.released += accepted

    def part(self, step: slice) -> Self:
        part = type(self)(self.lease)
        part.items = self.items[step]
        return part


def _verdicts(accepted: list[bool]) -> list[Verdict]:
    return [Verdict.ACCEPTED if each else Verdict.REFUSED for each in accepted]
