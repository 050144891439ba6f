"""Reports outcomes to the server, and repeats what it does not answer.

Outcomes that are added together are reported together, in one call for each lease; the client joins
calls that are made while others are under way. A report is repeated as long as the pool runs: an
item counts only once the server has confirmed it.
"""

import asyncio
from collections.abc import Callable, Sequence

from queueber.errors import (
    Internal,
    InvalidArgument,
    OutcomeUnknown,
    QueueberError,
    ResourceExhausted,
    Unavailable,
)
from queueber.worker.counters import Counters
from queueber.worker.event_logger import EventLogger
from queueber.worker.handlers.handler_outcome import Failed
from queueber.worker.pool.background import Background
from queueber.worker.pool.failure_log import FailureLog
from queueber.worker.pool.lease_reports import Completion, Failure, LeaseReport, Release, Verdict
from queueber.worker.pool.server_health import ServerHealth, new_backoff
from queueber.worker.pool.work_queue import WorkQueue
from queueber.worker.work_item import HeldLease, WorkItem, logged_ids
from queueber.worker.worker_settings import OnLeaseLost

_INTERNAL_ERRORS_MAX = 3
"""How often a report is sent that the server answers with an internal error."""


class Reporter:
    def __init__(
        self,
        queue: WorkQueue,
        health: ServerHealth,
        counters: Counters,
        log: EventLogger,
        background: Background,
        on_settled: Callable[[HeldLease, int], None],
        on_lease_lost: OnLeaseLost | None,
    ) -> None:
        """`on_settled` is called with a lease and how many of its items need nothing more."""
        self._queue = queue
        self._health = health
        self._counters = counters
        self._log = log
        self._background = background
        self._on_settled = on_settled
        self._on_lease_lost = on_lease_lost
        self._refused_results = FailureLog(log, "result_refused")
        self._completions: dict[HeldLease, Completion] = {}
        self._failures: dict[tuple[HeldLease, float | None], Failure] = {}
        self._releases: dict[HeldLease, Release] = {}
        self._is_empty = asyncio.Event()
        self._is_empty.set()

    # --- adding: nothing leaves before `send` -----------------------------------------------------

    def complete(self, item: WorkItem, result: bytes) -> None:
        lease = item.lease
        report = self._completions.get(lease)
        if report is None:
            report = self._completions[lease] = Completion(lease)
        report.add(item, result)

    def fail(self, item: WorkItem, failed: Failed) -> None:
        key = item.lease, failed.delay
        report = self._failures.get(key)
        if report is None:
            report = self._failures[key] = Failure(item.lease, failed.delay)
        report.add(item, failed.error)

    def release(self, item: WorkItem) -> None:
        report = self._releases.get(item.lease)
        if report is None:
            report = self._releases[item.lease] = Release(item.lease)
        report.add(item)

    def send(self) -> None:
        """Report what was added."""
        for reports in (self._completions, self._failures, self._releases):
            for report in reports.values():
                self._counters.unreported += len(report.items)
                self._is_empty.clear()
                self._background.start(self._deliver, report)
            reports.clear()

    def lose(self, items: Sequence[WorkItem], reason: str) -> None:
        """Outcomes of lost leases: they are not sent, or the server refused them."""
        self._counters.refused += len(items)
        self._log.warning("results_refused", count=len(items), ids=logged_ids(items), reason=reason)
        if self._on_lease_lost is not None:
            for item in items:
                try:
                    self._on_lease_lost(item)
                except Exception as error:  # noqa: BLE001  code of the user
                    self._log.warning("on_lease_lost_failed", id=item.id.hex(), error=repr(error))

    async def wait_empty(self) -> None:
        """Wait until the server has confirmed all reports."""
        await self._is_empty.wait()

    # --- sending ----------------------------------------------------------------------------------

    async def _deliver(self, report: LeaseReport) -> None:
        backoff = new_backoff()
        internal_errors = 0
        while True:
            try:
                verdicts = await report.send(self._queue)
            except Unavailable as error:
                self._health.failed(error)
            except OutcomeUnknown as error:
                report.is_repeated = True
                self._health.failed(error)
            except Internal as error:
                report.is_repeated = True
                internal_errors += 1
                if internal_errors == _INTERNAL_ERRORS_MAX:
                    return self._give_up(report, error)
            except (InvalidArgument, ResourceExhausted) as error:
                # The report is too large, or one of its items is at fault.
                if len(report.items) == 1:
                    return self._give_up(report, error)
                for half in report.halves():
                    await self._deliver(half)
                return None
            except QueueberError as error:
                return self._give_up(report, error)
            else:
                self._health.answered()
                return self._settle(report, verdicts)
            await backoff.pause()

    def _give_up(self, report: LeaseReport, error: QueueberError) -> None:
        """The server will never accept the report. A refused result becomes a failure."""
        if isinstance(report, Completion) and isinstance(
            error, InvalidArgument | ResourceExhausted
        ):
            self._counters.unreported -= len(report.items)
            for item, result in zip(report.items, report.results, strict=True):
                text = (
                    f"the server refused the result: {error} (the result has {len(result)} bytes)"
                )
                self._refused_results.record(item, text)
                self.fail(item, Failed(text))
            self.send()
            return
        if not isinstance(report, Release):
            self.lose(report.items, reason=str(error))
        self._forget(report)

    def _settle(self, report: LeaseReport, verdicts: list[Verdict]) -> None:
        refused = verdicts.count(Verdict.REFUSED)
        died = verdicts.count(Verdict.DIED)
        report.count(self._counters, len(verdicts) - refused - died, died)
        if refused and not isinstance(report, Release):
            items = [
                item
                for item, verdict in zip(report.items, verdicts, strict=True)
                if verdict is Verdict.REFUSED
            ]
            if report.is_repeated:
                self._counters.unknown += refused
                self._log.info("results_unknown", count=refused, ids=logged_ids(items))
            else:
                self.lose(items, reason="the lease had ended before the result was sent")
        self._forget(report)

    def _forget(self, report: LeaseReport) -> None:
        self._counters.unreported -= len(report.items)
        if not self._counters.unreported:
            self._is_empty.set()
        self._on_settled(report.lease, len(report.items))
