"""What a pool reports about items of one lease: completed, failed or released."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, Literal

from queueber.model import FailOutcome
from queueber.worker.counters import Counters
from queueber.worker.handlers.handler_outcome import Failed, truncated
from queueber.worker.handlers.runner import Finished
from queueber.worker.pool.work_queue import WorkQueue
from queueber.worker.work_item import HeldLease, WorkItem

Ending = Literal["completed", "failed", "released"]


class Verdict(Enum):
    ACCEPTED = "accepted"
    DIED = "accepted, and the item is a dead letter now"
    REFUSED = "refused: the lease does not hold the item any more"


_VERDICTS = {
    True: Verdict.ACCEPTED,
    False: Verdict.REFUSED,
    FailOutcome.RETRIED: Verdict.ACCEPTED,
    FailOutcome.DIED: Verdict.DIED,
    FailOutcome.REFUSED: Verdict.REFUSED,
}


@dataclass(slots=True, eq=False)
class LeaseReport:
    """Items of one lease that ended in the same way. They are reported in one call."""

    lease: HeldLease
    ending: Ending
    delay: float | None = None
    """How long failed items are delayed; None: as the queue says."""
    items: list[WorkItem] = field(default_factory=list)
    payloads: list[Any] = field(default_factory=list)
    """For each item its result, or its error; unused for released items."""
    is_repeated: bool = False
    """The connection broke when the report was sent before: the server may have it."""

    async def send(self, queue: WorkQueue) -> list[Verdict]:
        """Tell the server, once."""
        ids = [item.id for item in self.items]
        lease = self.lease.id
        answers: list[bool] | list[FailOutcome]
        if self.ending == "completed":
            answers = await queue.complete(ids, self.payloads, lease=lease)
        elif self.ending == "failed":
            answers = await queue.fail(ids, self.payloads, lease=lease, delay=self.delay)
        else:
            answers = await queue.release(ids, lease=lease)
        return [_VERDICTS[answer] for answer in answers]

    def count(self, counters: Counters, verdicts: list[Verdict]) -> None:
        """Add what the server accepted to the counters."""
        accepted = len(verdicts) - verdicts.count(Verdict.REFUSED)
        if self.ending == "completed":
            counters.done += accepted
        elif self.ending == "failed":
            counters.failed += accepted
            counters.died += verdicts.count(Verdict.DIED)
        else:
            counters.released += accepted

    def halves(self) -> "list[LeaseReport]":
        slices = slice(0, None, 2), slice(1, None, 2)
        return [replace(self, items=self.items[s], payloads=self.payloads[s]) for s in slices]


def reports_of(outcomes: Iterable[Finished]) -> list[LeaseReport]:
    """One report for each lease, ending and delay. Unfinished items are released."""
    completed: dict[HeldLease, LeaseReport] = {}
    others: dict[tuple[HeldLease, float | None, bool], LeaseReport] = {}
    for item, outcome in outcomes:
        lease = item.lease
        if isinstance(outcome, bytes):
            report = completed.get(lease)
            if report is None:
                report = completed[lease] = LeaseReport(lease, "completed")
            payload: bytes | str = outcome
        elif isinstance(outcome, Failed):
            key = lease, outcome.delay, True
            report = others.setdefault(key, LeaseReport(lease, "failed", outcome.delay))
            payload = truncated(outcome.error)
        else:
            report = others.setdefault((lease, None, False), LeaseReport(lease, "released"))
            payload = b""
        report.items.append(item)
        report.payloads.append(payload)
    return [*completed.values(), *others.values()]
