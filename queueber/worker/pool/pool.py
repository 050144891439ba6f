"""A pool in one process: items are polled, handled and reported; at the end it shuts down."""

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from queueber.client import AsyncClient, AsyncLease, AsyncQueue, connect_async
from queueber.worker.handlers.runner import CANCEL_SECONDS_MAX, Finished, Runner
from queueber.worker.handlers.runners import make_runner
from queueber.worker.handlers.work_item import Failed, HeldLease, Unfinished, WorkItem
from queueber.worker.pool.background import Background, first_of
from queueber.worker.pool.failure_log import FailureLog
from queueber.worker.pool.loop_monitor import LoopMonitor
from queueber.worker.pool.poller import Poller
from queueber.worker.pool.reporter import SENDERS, Reporter
from queueber.worker.pool.server_health import Heartbeat, ServerHealth
from queueber.worker.pool.source import open_source, work_items
from queueber.worker.pool.stuck_handlers import StuckHandlers
from queueber.worker.progress import (
    Counters,
    EventLogger,
    WorkerStats,
    log_stopping,
    logged_ids,
)
from queueber.worker.worker_settings import WorkerSettings

_RETRY_SECONDS = 1.0
"""How long the client retries by itself before the pool takes the server for unreachable."""

_LAST_REPORTS_SECONDS = 5.0
"""How long the last reports are retried at shutdown if the server does not answer."""
_LAST_REPORTS_SECONDS_NOW = 1.0
"""The same after `stop(now=True)`."""


class Pool:
    """Runs once, on one asyncio loop. `stop` is called on that loop."""

    def __init__(
        self,
        settings: WorkerSettings,
        log: EventLogger,
        *,
        wrap_queue: Callable[[AsyncQueue], Any] = lambda queue: queue,
    ) -> None:
        """`wrap_queue` puts something between pool and queue, such as a recorder of calls."""
        self._settings = settings
        self._log = log
        self._wrap_queue = wrap_queue
        self._counters = Counters()
        self._health = ServerHealth(log, self._counters)
        self._items: set[WorkItem] = set()
        """Items that wait or are with handlers."""
        self._runner: Runner | None = None
        self.monitor = LoopMonitor(log)
        self._stuck = StuckHandlers(settings, self._counters, log)
        self._failure_log = FailureLog(log, "handler_failed")
        self._has_no_items = asyncio.Event()
        self._has_no_items.set()
        self._is_stopping = asyncio.Event()
        self._is_stopping_now = asyncio.Event()
        self.on_milestone: Callable[[], None] = lambda: None
        """Called with the first items, and when the server has confirmed the first outcome."""
        self.on_stopping: Callable[[int], None] = partial(
            log_stopping, log, settings.shutdown_seconds
        )
        """Called when `stop` was called, with the number of handlers that the pool waits for."""
        self._has_had_items = self._has_finished = False

    def stop(self, *, now: bool = False) -> None:
        """Poll no more, and end when the handlers have ended; `now`: do not wait for them."""
        self._is_stopping.set()
        if now:
            self._is_stopping_now.set()

    @property
    def is_retiring(self) -> bool:
        """Whether the run ended because of a handler, and its process is to be replaced."""
        return self._stuck.is_retiring and not self._is_stopping.is_set()

    def stats(self) -> WorkerStats:
        """May be called from any thread."""
        waiting = self._runner.waiting if self._runner is not None else 0
        return self._counters.stats(in_flight=max(len(self._items) - waiting, 0), waiting=waiting)

    async def run(self) -> None:
        """Work until stopped, or until the queue is empty if that was asked for.

        Raises the error that ended the pool, after it has released its items as far as possible.
        """
        client = await first_of(self._connect(), self._is_stopping.wait())
        if isinstance(client, AsyncClient):
            async with contextlib.aclosing(client), Background() as background:
                with self.monitor.watching():
                    await self._work(client, background)

    async def _connect(self) -> AsyncClient:
        settings = self._settings
        return await connect_async(
            settings.address,
            connect_timeout=settings.connect_seconds,
            retry_timeout=_RETRY_SECONDS,
            token=settings.token,
            tls=settings.tls,
        )

    async def _work(self, client: AsyncClient, background: Background) -> None:
        settings = self._settings
        queue = self._wrap_queue(open_source(client, settings))
        health, counters, log = self._health, self._counters, self._log
        self._heartbeat = Heartbeat(queue, health, settings.lease_seconds, self._lose)
        self._reporter = Reporter(
            queue, health, counters, log, self._settled, settings.on_lease_lost
        )
        self._poller = Poller(
            client, queue, settings, health, counters, log, self._items, self._leased
        )
        runner = self._runner = make_runner(settings, self._finished)
        for run in (self._heartbeat.run, runner.watch_time, *[self._reporter.run] * SENDERS):
            background.start(run)
        failure: Exception | None = None
        try:
            try:
                await first_of(
                    self._poller.run(),
                    self._is_stopping.wait(),
                    self._stuck.run(lambda: self._release(runner.withdraw())),
                    background.wait_failed(),
                )
            except Exception as error:  # noqa: BLE001  raised below, after the shutdown
                failure = error
            if self.is_retiring:
                await self._retire(runner)
            await self._shut_down(runner)
        finally:
            self._runner = None
            await runner.close()
        if failure is not None:
            raise failure

    # --- the way of an item -----------------------------------------------------------------------

    def _leased(self, lease: AsyncLease) -> None:
        held = HeldLease(lease.id, len(lease), asyncio.get_running_loop().time())
        items = work_items(lease, held, self._settings)
        self._heartbeat.add(held)
        self._items.update(items)
        self._has_no_items.clear()
        if not self._has_had_items:
            self._has_had_items = True
            self.on_milestone()
        assert self._runner is not None
        if self._stuck.are_all:
            self._release(items)  # the poll began when a handler was free
        else:
            self._runner.put(items)

    def _finished(self, finished: Sequence[Finished]) -> None:
        items = self._items
        outcomes: list[Finished] = []
        lost: list[WorkItem] = []
        for item, outcome in finished:
            if item not in items:
                continue  # released at shutdown, because its handler took too long
            items.remove(item)
            if item.lease.is_lost:
                if outcome is not Unfinished.NOT_BEGUN:
                    lost.append(item)
                continue
            outcomes.append((item, outcome))
            if isinstance(outcome, Failed):
                self._counters.timed_out += outcome.is_late
                self._failure_log.record(item, outcome.error)
        self._reporter.send(outcomes)
        if lost:
            self._reporter.lose(lost, reason="the lease ended while the handler was at work")
        if self._runner is not None:
            self._stuck.update(self._runner.stuck)
        self._update()

    def _update(self) -> None:
        if not self._items:
            self._has_no_items.set()
        self._poller.update()

    def _settled(self, lease: HeldLease, count: int) -> None:
        lease.unreported -= count
        if lease.unreported == 0:
            self._heartbeat.forget(lease)
        if not self._has_finished and (self._counters.done or self._counters.failed):
            self._has_finished = True
            self.on_milestone()
        self._update()

    def _lose(self, lease: HeldLease) -> None:
        """Coroutines are cancelled, threads can see it; items that wait are dropped."""
        lease.is_lost = True
        if self._runner is not None:
            self._runner.cancel(lease)

    # --- shutdown ---------------------------------------------------------------------------------

    async def _retire(self, runner: Runner) -> None:
        """A handler is stuck: let the others end, each within its own time limit."""
        self._release(runner.withdraw())
        seconds = (self._settings.timeout_seconds or 0) + CANCEL_SECONDS_MAX
        await first_of(self._has_no_items.wait(), self._is_stopping.wait(), seconds=seconds)

    async def _shut_down(self, runner: Runner) -> None:
        """Release what no handler has begun, wait for handlers, release what they still have."""
        self._release(runner.withdraw())
        if self._is_stopping.is_set():
            self.on_stopping(len(self._items))
        await first_of(
            self._has_no_items.wait(),
            self._is_stopping_now.wait(),
            seconds=self._settings.shutdown_seconds,
        )
        if self._items:
            if runner.can_cancel:
                runner.cancel()
                await first_of(self._has_no_items.wait(), seconds=CANCEL_SECONDS_MAX)
            if self._items:
                self._counters.abandoned = len(self._items)
                self._log.warning(
                    "handlers_abandoned", count=len(self._items), ids=logged_ids(self._items)
                )
            self._release(list(self._items))
        if self._is_stopping_now.is_set():
            await first_of(self._reporter.is_empty.wait(), seconds=_LAST_REPORTS_SECONDS_NOW)
        else:
            await first_of(
                self._reporter.is_empty.wait(),
                self._is_stopping_now.wait(),
                seconds=_LAST_REPORTS_SECONDS,
            )
        if self._counters.unreported:
            self._log.warning("results_abandoned", count=self._counters.unreported)

    def _release(self, items: list[WorkItem]) -> None:
        self._items.difference_update(items)
        held = [(item, Unfinished.NOT_BEGUN) for item in items if not item.lease.is_lost]
        self._reporter.send(held)
        self._update()
