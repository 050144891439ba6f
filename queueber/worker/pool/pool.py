"""A pool in one process: items are polled, handled and reported; at the end it shuts down."""

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from queueber.client import AsyncClient, AsyncLease, AsyncQueue, connect_async
from queueber.limits import CLIENT_NAME_BYTES_MAX
from queueber.worker.handlers.kinds import JobItem, Kinds
from queueber.worker.handlers.runner import CANCEL_SECONDS_MAX, Finished
from queueber.worker.handlers.runners import make_runner
from queueber.worker.handlers.shared_deadlines import SharedDeadlines
from queueber.worker.handlers.work_item import Failed, HeldLease, Unfinished, WorkItem
from queueber.worker.pool.background import Background, first_of
from queueber.worker.pool.blocked_process import BlockedProcess
from queueber.worker.pool.failure_log import FailureLog
from queueber.worker.pool.feeds import Feeds
from queueber.worker.pool.loop_monitor import LoopMonitor
from queueber.worker.pool.server_health import ServerHealth
from queueber.worker.pool.source import job_items, open_source, work_items
from queueber.worker.pool.stuck_handlers import AnyRunner, StuckHandlers
from queueber.worker.pool.unknown_kinds import UnknownKinds
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

_FLUSH_SECONDS = 1.0


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
        self._runner: AnyRunner | None = None
        self.monitor = LoopMonitor(log)
        self._stuck = StuckHandlers(settings, self._counters, log)
        self.blocked = BlockedProcess(settings, self._counters)
        self.deadlines: SharedDeadlines | None = None
        """Of a worker process: where its parent looks."""
        self.monitor.on_blocked = self._give_back_blocked
        self._failure_log = FailureLog(log, "handler_failed")
        handler = settings.find_handler()
        self._kinds = handler if isinstance(handler, Kinds) else None
        self._unknown = UnknownKinds(log, self._update, is_until=settings.until is not None)
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

    def on_connected(self, call: Callable[[], object]) -> None:
        """Have `call` called once the server has answered for the first time."""
        self._health.on_connected = call

    def stop(self, *, now: bool = False) -> None:
        """Poll no more, and end when the handlers have ended; `now`: do not wait for them."""
        self._is_stopping.set()
        if now:
            self._is_stopping_now.set()

    def interrupt(self) -> None:
        """End coroutines that block the loop, from a signal handler on its thread."""
        runner = self._runner
        self.monitor.interrupt(runner.cancel_at_once if runner is not None else lambda: None)

    def _give_back_blocked(self) -> None:
        """On the thread of the monitor: the loop is blocked."""
        if self._runner is None or not self.blocked.is_possible:
            return
        late = self._runner.blocked_by()
        if late is None:
            return
        item, failed = late
        is_told = self.blocked.give_back(item, self._with_backoff(item, failed), self._items)
        if is_told and self.blocked.replace is not None:
            self._failure_log.record(item, failed.error)
            self.blocked.replace()

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
            name=_client_name(settings.source),
            token=settings.token,
            tls=settings.tls,
        )

    async def _work(self, client: AsyncClient, background: Background) -> None:
        settings = self._settings
        self._feeds = Feeds(
            client, settings, self._health, self._counters, self._log, self._items, self._unknown
        )
        for name, weight in settings.queue_weights.items():
            queue = self._wrap_queue(open_source(client, settings, name))
            self._feeds.add(name, weight, queue, self._leased, self._lose, self._settled)
        runner = self._runner = make_runner(settings, self._finished, self.deadlines)
        for run in (runner.watch_time, *self._feeds.background()):
            background.start(run)
        background.start(self._flush_logs)
        if self._kinds is not None and settings.until is None:
            background.start(self._unknown.run, self._feeds.release_unknown)
        failure: Exception | None = None
        try:
            try:
                await first_of(
                    self._feeds.run(),
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
            for log in self._failure_log, self._unknown.failure_log:
                log.flush(is_end=True)
            self._feeds.flush_logs()
            await runner.close()
        if failure is not None:
            raise failure

    # --- the way of an item -----------------------------------------------------------------------

    def _leased(self, lease: AsyncLease, held: HeldLease) -> None:
        if self._kinds is None:
            items = work_items(lease, held, self._settings)
        else:
            items, unknown = job_items(lease, held, self._kinds)
            self._feeds.ended(unknown)
            for item in unknown:
                self._unknown.add(item)
            if not items:
                return
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
        gone: list[WorkItem] = []
        for item, outcome in finished:
            if item not in items:
                continue  # released at shutdown, because its handler took too long
            items.remove(item)
            gone.append(item)
            if item.lease.is_lost:
                if outcome is not Unfinished.NOT_BEGUN:
                    lost.append(item)
                continue
            if isinstance(outcome, Failed):
                outcome = self._with_backoff(item, outcome)  # noqa: PLW2901
                self._counters.timed_out += outcome.is_late
                self._failure_log.record(item, outcome.error)
            outcomes.append((item, outcome))
        self._feeds.ended(gone)
        self._feeds.send(outcomes)
        if lost:
            self._feeds.lose(lost, reason="the lease ended while the handler was at work")
        if self._runner is not None:
            self._stuck.update(self._runner)
        self._update()

    def _with_backoff(self, item: WorkItem, failed: Failed) -> Failed:
        """With the delay that its kind says, unless the handler or the item has one."""
        if failed.delay is None and isinstance(item, JobItem) and not item.has_backoff:
            return replace(failed, delay=item.kind.delay_after(item.attempt))
        return failed

    def _update(self) -> None:
        if not self._items:
            self._has_no_items.set()
        self._feeds.update()

    def _settled(self, lease: HeldLease, count: int) -> None:
        lease.unreported -= count
        if lease.unreported == 0:
            self._feeds.forget(lease)
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

    async def _retire(self, runner: AnyRunner) -> None:
        """A handler is stuck: let the others end, each within its own time limit."""
        self._release(runner.withdraw())
        seconds = runner.time_left + CANCEL_SECONDS_MAX
        await first_of(self._has_no_items.wait(), self._is_stopping.wait(), seconds=seconds)

    async def _shut_down(self, runner: AnyRunner) -> None:
        """Release what no handler has begun, wait for handlers, release what they still have."""
        self._release(runner.withdraw())
        self._feeds.release_unknown(self._unknown.withdraw())
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
            await first_of(self._feeds.wait_reported(), seconds=_LAST_REPORTS_SECONDS_NOW)
        else:
            await first_of(
                self._feeds.wait_reported(),
                self._is_stopping_now.wait(),
                seconds=_LAST_REPORTS_SECONDS,
            )
        if self._counters.unreported:
            self._log.warning("results_abandoned", count=self._counters.unreported)

    def _release(self, items: list[WorkItem]) -> None:
        self._feeds.ended([item for item in items if item in self._items])
        self._items.difference_update(items)
        held = [(item, Unfinished.NOT_BEGUN) for item in items if not item.lease.is_lost]
        self._feeds.send(held)
        self._update()

    # --- log --------------------------------------------------------------------------------------

    async def _flush_logs(self) -> None:
        """Without end: log the last failure of each burst."""
        while True:
            await asyncio.sleep(_FLUSH_SECONDS)
            for log in self._failure_log, self._unknown.failure_log:
                log.flush()


def _client_name(source: str) -> str:
    """How the server's log and lists of leases name it: printable, and as long as names may be."""
    name = f"worker of {''.join(filter(str.isprintable, source))}"
    return name.encode()[:CLIENT_NAME_BYTES_MAX].decode(errors="ignore")
