"""The way out: outcomes gather here by lease, and leave in few calls.

A lone outcome leaves in the same turn of the loop. While calls are under way further ones gather,
and leave together when one returns. What the server does not answer is sent again for as long as
the pool lives: an item counts only once the server has confirmed it.
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
from queueber.limits import MIB
from queueber.worker.contact import Contact, Journal
from queueber.worker.holding import HeldLease, WorkItem, shown_ids
from queueber.worker.outcomes import Failed
from queueber.worker.reports import Completion, Failure, Release, Report, Verdict
from queueber.worker.settings import OnRefused
from queueber.worker.tally import Tally
from queueber.worker.work_queue import WorkQueue

_CALLS_MAX = 2
"""While the server syncs one, the next is on its way."""

_FAULTS_MAX = 3
"""How often a report is sent over which the server stumbles; nobody else may wait for it."""

_REPORT_ITEMS_MAX = 1000
_REPORT_BYTES_MAX = MIB


class Outlet:
    def __init__(
        self,
        queue: WorkQueue,
        contact: Contact,
        tally: Tally,
        journal: Journal,
        on_settled: Callable[[HeldLease, int], None],
        on_refused: OnRefused | None,
    ) -> None:
        """`on_settled` is told how many items of a lease need nothing more."""
        self._queue = queue
        self._contact = contact
        self._tally = tally
        self._journal = journal
        self._on_settled = on_settled
        self._on_refused = on_refused
        self._loop = asyncio.get_running_loop()
        self._completions: dict[HeldLease, Completion] = {}
        self._failures: dict[tuple[HeldLease, float | None], Failure] = {}
        self._ready: list[Report] = []
        """To these nothing is added any more."""
        self._is_leaving_soon = False
        self._tasks: set[asyncio.Task[None]] = set()
        self.failure: asyncio.Future[None] = self._loop.create_future()
        """Never done, unless a fault of our own ended a call."""

    def complete(self, item: WorkItem, result: bytes) -> None:
        lease = item.lease
        report = self._completions.get(lease)
        if report is None:
            report = self._completions[lease] = Completion(lease)
        report.add(item, result)
        if _is_full(report):
            self._ready.append(self._completions.pop(lease))
        self._put(1)

    def fail(self, item: WorkItem, failed: Failed) -> None:
        key = item.lease, failed.delay
        report = self._failures.get(key)
        if report is None:
            report = self._failures[key] = Failure(item.lease, failed.delay)
        report.add(item, failed.error)
        if _is_full(report):
            self._ready.append(self._failures.pop(key))
        self._put(1)

    def release(self, items: Sequence[WorkItem]) -> None:
        releases: dict[HeldLease, Release] = {}
        for item in items:
            releases.setdefault(item.lease, Release(item.lease)).add(item)
        self._ready.extend(releases.values())
        self._put(len(items))

    def refuse(self, items: Sequence[WorkItem], reason: str) -> None:
        """Outcomes that would come too late, and so are not even sent."""
        self._tally.refused += len(items)
        self._journal.warning(
            "results_refused", count=len(items), ids=shown_ids(items), reason=reason
        )
        if self._on_refused is not None:
            for item in items:
                try:
                    self._on_refused(item)
                except Exception as error:  # noqa: BLE001  a fault of the program's, not of the pool's
                    self._journal.warning("on_refused_failed", id=item.id.hex(), error=repr(error))

    @property
    def is_empty(self) -> bool:
        return not (self._tasks or self._completions or self._failures or self._ready)

    async def wait_empty(self) -> None:
        while not self.is_empty:
            await (asyncio.wait(self._tasks) if self._tasks else asyncio.sleep(0))

    async def close(self) -> None:
        """Give up what is not answered."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self.failure.cancel()

    def _put(self, count: int) -> None:
        self._tally.unreported += count
        if not self._is_leaving_soon and len(self._tasks) < _CALLS_MAX:
            self._is_leaving_soon = True
            self._loop.call_soon(self._leave)

    def _leave(self) -> None:
        self._is_leaving_soon = False
        reports = [*self._ready, *self._completions.values(), *self._failures.values()]
        if reports and len(self._tasks) < _CALLS_MAX:
            self._ready, self._completions, self._failures = [], {}, {}
            task = self._loop.create_task(self._deliver_all(reports))
            self._tasks.add(task)
            task.add_done_callback(self._returned)

    def _returned(self, task: "asyncio.Task[None]") -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            if not self.failure.done():
                self.failure.set_exception(error)
            return
        self._leave()

    async def _deliver_all(self, reports: list[Report]) -> None:
        if len(reports) == 1:
            await self._deliver(reports[0])
        else:
            # The client joins what is sent at the same time.
            async with asyncio.TaskGroup() as group:
                for report in reports:
                    group.create_task(self._deliver(report))

    async def _deliver(self, report: Report) -> None:
        faults = 0
        while True:
            try:
                verdicts = await report.send(self._queue)
            except Unavailable as error:
                self._contact.lost(error)
            except OutcomeUnknown as error:
                report.is_unsure = True
                self._contact.lost(error)
            except Internal as error:
                report.is_unsure = True
                faults += 1
                if faults == _FAULTS_MAX:
                    return self._give_up(report, error)
            except (InvalidArgument, ResourceExhausted) as error:
                # Refused as a whole: it is too large, or one of them is at fault.
                if len(report.items) == 1:
                    return self._give_up(report, error)
                for part in report.split():
                    await self._deliver(part)
                return None
            except QueueberError as error:
                return self._give_up(report, error)
            else:
                self._contact.found()
                return self._settle(report, verdicts)
            await self._contact.pause()

    def _give_up(self, report: Report, error: QueueberError) -> None:
        """The server will never take this: a result becomes a failure, anything else is let go."""
        if isinstance(report, Completion) and isinstance(
            error, InvalidArgument | ResourceExhausted
        ):
            self._tally.unreported -= len(report.items)
            for item in report.items:
                self.fail(item, Failed(f"the server refused the result: {error}"))
            return
        if not isinstance(report, Release):
            self.refuse(report.items, reason=str(error))
        self._forget(report)

    def _settle(self, report: Report, verdicts: list[Verdict]) -> None:
        refused = verdicts.count(Verdict.REFUSED)
        died = verdicts.count(Verdict.DIED)
        report.count(self._tally, len(verdicts) - refused - died, died)
        if refused and not isinstance(report, Release):
            items = [
                item
                for item, verdict in zip(report.items, verdicts, strict=True)
                if verdict is Verdict.REFUSED
            ]
            if report.is_unsure:
                self._tally.unknown += refused
                self._journal.info("results_unknown", count=refused, ids=shown_ids(items))
            else:
                self.refuse(items, reason="the lease had ended before the result was sent")
        self._forget(report)

    def _forget(self, report: Report) -> None:
        self._tally.unreported -= len(report.items)
        self._on_settled(report.lease, len(report.items))


def _is_full(report: Report) -> bool:
    return len(report.items) >= _REPORT_ITEMS_MAX or report.size >= _REPORT_BYTES_MAX
