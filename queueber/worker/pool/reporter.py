"""Reports outcomes to the server, and repeats what it does not answer.

While reports are under way further outcomes gather here, and leave by lease when a sender is free.
Handing each outcome to the client at once would leave the joining to it; but it would then name a
lease for every item, and both sides would do more work. A report is repeated as long as the pool
runs: an item counts only once the server has confirmed it.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from queueber import errors
from queueber.client import AsyncQueue
from queueber.model import FailOutcome
from queueber.worker.handlers.error_text import truncated
from queueber.worker.handlers.runner import Finished
from queueber.worker.handlers.work_item import Failed, HeldLease, Unfinished, WorkItem
from queueber.worker.pool.failure_log import FailureLog
from queueber.worker.pool.server_health import ServerHealth, new_retries
from queueber.worker.progress import Counters, EventLogger, logged_ids
from queueber.worker.worker_settings import OnLeaseLost

SENDERS = 2
"""While the server syncs one report, the next is on its way."""

_OUTCOMES_MAX = 1000
"""Outcomes that one sender takes at once."""

_WRONG_REPORT = (errors.InvalidArgument, errors.ResourceExhausted)
"""The report is too large, or one of its items is at fault."""

_INTERNAL_ERRORS_MAX = 3
"""How often a report is sent that the server answers with an internal error."""


@dataclass(slots=True, eq=False)
class LeaseReport:
    """Items of one lease that ended in the same way. They are reported in one call."""

    lease: HeldLease
    ending: Literal["completed", "failed", "released", "unknown"]
    """Unknown: released because the worker does not know its kind."""
    delay: float | None = None
    """How long failed items are delayed; None: as the queue says."""
    items: list[WorkItem] = field(default_factory=list)
    payloads: list[Any] = field(default_factory=list)
    """For each item its result, or its error; unused for released items."""
    is_repeated: bool = False
    """The connection broke when the report was sent before: the server may have it."""

    async def send(self, queue: AsyncQueue) -> list[bool] | list[FailOutcome]:
        """Tell the server, once."""
        ids = [item.id for item in self.items]
        lease = self.lease.id
        if self.ending == "completed":
            return await queue.complete(ids, self.payloads, lease=lease)
        if self.ending == "failed":
            return await queue.fail(ids, self.payloads, lease=lease, delay=self.delay)
        return await queue.release(ids, lease=lease)

    def halves(self) -> "list[LeaseReport]":
        slices = slice(0, None, 2), slice(1, None, 2)
        return [replace(self, items=self.items[s], payloads=self.payloads[s]) for s in slices]


def reports_of(outcomes: Iterable[Finished]) -> list[LeaseReport]:
    """One report for each lease, ending and delay. Unfinished items are released."""
    completed: dict[HeldLease, LeaseReport] = {}
    others: dict[tuple[HeldLease, float | None, str], LeaseReport] = {}
    for item, outcome in outcomes:
        lease = item.lease
        if isinstance(outcome, bytes):
            report = completed.get(lease)
            if report is None:
                report = completed[lease] = LeaseReport(lease, "completed")
            payload: bytes | str = outcome
        elif isinstance(outcome, Failed):
            key = lease, outcome.delay, "failed"
            report = others.setdefault(key, LeaseReport(lease, "failed", outcome.delay))
            payload = truncated(outcome.error)
        else:
            ending: Literal["released", "unknown"] = (
                "unknown" if outcome is Unfinished.UNKNOWN_KIND else "released"
            )
            report = others.setdefault((lease, None, ending), LeaseReport(lease, ending))
            payload = b""
        report.items.append(item)
        report.payloads.append(payload)
    return [*completed.values(), *others.values()]


@dataclass(eq=False)
class Reporter:
    queue: AsyncQueue
    health: ServerHealth
    counters: Counters
    log: EventLogger
    on_settled: Callable[[HeldLease, int], None]
    """Called with a lease and how many of its items need nothing more."""
    on_lease_lost: OnLeaseLost | None

    def __post_init__(self) -> None:
        self.refused_results = FailureLog(self.log, "result_refused")
        self._pending: list[Finished] = []
        self._unreported = 0
        """Of this queue; the counter is that of all queues of the pool."""
        self._has_pending = asyncio.Event()
        self.is_empty = asyncio.Event()
        """Set while the server has confirmed all reports."""
        self.is_empty.set()

    def send(self, outcomes: Sequence[Finished]) -> None:
        """Report these outcomes, soon. Unfinished items are released."""
        if outcomes:
            self._count_unreported(len(outcomes))
            self._pending += outcomes
            self.is_empty.clear()
            self._has_pending.set()

    def lose(self, items: Sequence[WorkItem], reason: str) -> None:
        """Outcomes of lost leases: they are not sent, or the server refused them."""
        self.counters.refused += len(items)
        self.log.warning("results_refused", count=len(items), ids=logged_ids(items), reason=reason)
        if self.on_lease_lost is not None:
            for item in items:
                try:
                    self.on_lease_lost(item)
                except Exception as error:  # noqa: BLE001  code of the user
                    self.log.warning("on_lease_lost_failed", id=item.id.hex(), error=repr(error))

    async def run(self) -> None:
        """Send reports without end. Several of these run at once."""
        while True:
            while not self._pending:
                self._has_pending.clear()
                await self._has_pending.wait()
            reports = reports_of(self._pending[:_OUTCOMES_MAX])
            del self._pending[:_OUTCOMES_MAX]
            if len(reports) == 1:
                await self._deliver(reports[0])
            else:
                async with asyncio.TaskGroup() as group:
                    for report in reports:
                        group.create_task(self._deliver(report))

    async def _deliver(self, report: LeaseReport) -> None:
        backoff = new_retries()
        internal_errors = 0
        while True:
            try:
                answers = await report.send(self.queue)
            except errors.Unavailable as error:
                self.health.failed(error)
            except errors.OutcomeUnknown as error:
                report.is_repeated = True
                self.health.failed(error)
            except errors.Internal as error:
                report.is_repeated = True
                internal_errors += 1
                if internal_errors == _INTERNAL_ERRORS_MAX:
                    return self._give_up(report, error)
            except _WRONG_REPORT as error:
                if len(report.items) == 1:
                    return self._give_up(report, error)
                for half in report.halves():
                    await self._deliver(half)
                return None
            except errors.QueueberError as error:
                return self._give_up(report, error)
            else:
                self.health.answered()
                return self._settle(report, answers)
            await backoff.pause()

    def _give_up(self, report: LeaseReport, error: errors.QueueberError) -> None:
        """The server will never accept the report. A refused result becomes a failure."""
        if report.ending == "completed" and isinstance(error, _WRONG_REPORT):
            self._count_unreported(-len(report.items))
            for item, result in zip(report.items, report.payloads, strict=True):
                text = (
                    f"the server refused the result: {error} (the result has {len(result)} bytes)"
                )
                self.refused_results.record(item, text)
                self.send([(item, Failed(text))])
            return
        if report.ending in ("completed", "failed"):
            self.lose(report.items, reason=str(error))
        self._forget(report)

    def _settle(self, report: LeaseReport, answers: Sequence[bool | FailOutcome]) -> None:
        refused = [
            item
            for item, answer in zip(report.items, answers, strict=True)
            if answer in (False, FailOutcome.REFUSED)
        ]
        accepted = len(answers) - len(refused)
        if report.ending == "completed":
            self.counters.done += accepted
        elif report.ending == "failed":
            self.counters.failed += accepted
            self.counters.died += answers.count(FailOutcome.DIED)
        else:
            if report.ending == "released":
                self.counters.released += accepted
            else:
                self.counters.unknown_jobs += accepted
            refused = []  # they are free all the same
        if refused and report.is_repeated:
            self.counters.unknown += len(refused)
            self.log.info("results_unknown", count=len(refused), ids=logged_ids(refused))
        elif refused:
            self.lose(refused, reason="the lease had ended before the result was sent")
        self._forget(report)

    def _forget(self, report: LeaseReport) -> None:
        self._count_unreported(-len(report.items))
        if not self._unreported:
            self.is_empty.set()
        self.on_settled(report.lease, len(report.items))

    def _count_unreported(self, more: int) -> None:
        self._unreported += more
        self.counters.unreported += more
