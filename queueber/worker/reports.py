"""What a pool tells the server of its items: completed, failed or given back, by lease."""

from abc import ABC, abstractmethod
from enum import Enum
from typing import Self

from queueber.model import FailOutcome
from queueber.worker.holding import HeldLease, WorkItem
from queueber.worker.tally import Tally
from queueber.worker.work_queue import WorkQueue


class Verdict(Enum):
    ACCEPTED = "accepted"
    DIED = "accepted, and it was the last attempt"
    REFUSED = "refused: the lease does not hold the item any more"


_VERDICTS = {
    FailOutcome.RETRIED: Verdict.ACCEPTED,
    FailOutcome.DIED: Verdict.DIED,
    FailOutcome.REFUSED: Verdict.REFUSED,
}


class Report(ABC):
    """Items of one lease of which the same is told, in one operation."""

    def __init__(self, lease: HeldLease) -> None:
        self.lease = lease
        self.items: list[WorkItem] = []
        self.size = 0
        self.is_unsure = False
        """It was sent before, and the connection broke: the server may have done it."""

    @abstractmethod
    async def send(self, queue: WorkQueue) -> list[Verdict]:
        """Tell the server, once."""

    @abstractmethod
    def count(self, tally: Tally, accepted: int, died: int) -> None:
        """Add what the server accepted to the figures."""

    @abstractmethod
    def split(self) -> "list[Report]":
        """The same in two halves."""

    def made_like(self, whole: "Report") -> Self:
        self.is_unsure = whole.is_unsure
        return self

    @property
    def ids(self) -> list[bytes]:
        return [item.id for item in self.items]


class Completion(Report):
    def __init__(self, lease: HeldLease) -> None:
        super().__init__(lease)
        self.results: list[bytes] = []

    def add(self, item: WorkItem, result: bytes) -> None:
        self.items.append(item)
        self.results.append(result)
        self.size += len(result)

    async def send(self, queue: WorkQueue) -> list[Verdict]:
        return _verdicts(await queue.complete(self.ids, self.results, lease=self.lease.id))

    def count(self, tally: Tally, accepted: int, died: int) -> None:
        tally.done += accepted

    def split(self) -> list[Report]:
        halves = [Completion(self.lease), Completion(self.lease)]
        for at, (item, result) in enumerate(zip(self.items, self.results, strict=True)):
            halves[at % 2].add(item, result)
        return [half.made_like(self) for half in halves]


class Failure(Report):
    """Failures that share their delay; each has an error of its own."""

    def __init__(self, lease: HeldLease, delay: float | None) -> None:
        super().__init__(lease)
        self._delay = delay
        self._errors: list[str] = []

    def add(self, item: WorkItem, error: str) -> None:
        self.items.append(item)
        self._errors.append(error)
        self.size += len(error)

    async def send(self, queue: WorkQueue) -> list[Verdict]:
        outcomes = await queue.fail(self.ids, self._errors, lease=self.lease.id, delay=self._delay)
        return [_VERDICTS[outcome] for outcome in outcomes]

    def count(self, tally: Tally, accepted: int, died: int) -> None:
        tally.failed += accepted + died
        tally.died += died

    def split(self) -> list[Report]:
        halves = [Failure(self.lease, self._delay), Failure(self.lease, self._delay)]
        for at, (item, error) in enumerate(zip(self.items, self._errors, strict=True)):
            halves[at % 2].add(item, error)
        return [half.made_like(self) for half in halves]


class Release(Report):
    def add(self, item: WorkItem) -> None:
        self.items.append(item)

    async def send(self, queue: WorkQueue) -> list[Verdict]:
        return _verdicts(await queue.release(self.ids, lease=self.lease.id))

    def count(self, tally: Tally, accepted: int, died: int) -> None:
        tally.released += accepted

    def split(self) -> list[Report]:
        halves = [Release(self.lease), Release(self.lease)]
        for at, item in enumerate(self.items):
            halves[at % 2].add(item)
        return [half.made_like(self) for half in halves]


def _verdicts(accepted: list[bool]) -> list[Verdict]:
    return [Verdict.ACCEPTED if each else Verdict.REFUSED for each in accepted]
