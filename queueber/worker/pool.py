"""A pool in one process: what comes in, goes to handlers and goes out; and its orderly end."""

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from typing import Any, assert_never

from queueber.client import AsyncClient, AsyncLease, connect_async
from queueber.worker.complaints import Complaints
from queueber.worker.contact import Contact, Journal
from queueber.worker.heartbeat import Heartbeat
from queueber.worker.holding import HeldLease, WorkItem, shown_ids
from queueber.worker.intake import Intake
from queueber.worker.outcomes import Failed, Unfinished
from queueber.worker.outlet import Outlet
from queueber.worker.runner import Finished, Runner
from queueber.worker.runners import make_runner
from queueber.worker.settings import Settings
from queueber.worker.tally import Tally, WorkerStats
from queueber.worker.work_queue import Watch, unwatched

_RETRY_SECONDS = 1.0
"""How long the client tries by itself; after that the pool knows that the server is away."""

_LAST_WORDS_SECONDS = 5.0
"""How long the last outcomes are tried when the server is away as the pool ends."""
_HASTY_WORDS_SECONDS = 1.0
_CANCEL_SECONDS = 1.0
"""How long handlers that are cancelled for want of time have to end."""


class Pool:
    """Runs on one asyncio loop, for one life. `stop` is called on that loop."""

    def __init__(
        self,
        settings: Settings,
        journal: Journal,
        *,
        is_until_empty: bool = False,
        watch: Watch = unwatched,
    ) -> None:
        """`watch` sees every call about items: what the pool really asked, and was told."""
        self._settings = settings
        self._journal = journal
        self._is_until_empty = is_until_empty
        self._watch = watch
        self._tally = Tally()
        self._contact = Contact(journal, self._tally)
        self._items: set[WorkItem] = set()
        """Waiting, or with handlers."""
        self._runner: Runner | None = None
        self._complaints = Complaints(journal)
        self._is_empty_handed = asyncio.Event()
        self._is_empty_handed.set()
        self._is_stopping = asyncio.Event()
        self._is_hasty = asyncio.Event()
        self.on_milestone: Callable[[], None] = lambda: None
        """Called with the first items, and when the server has confirmed the first outcome."""
        self._has_had_items = self._has_finished = False

    def stop(self, *, now: bool = False) -> None:
        """Poll no more, and end once handlers have; `now`: give back what they have, and end."""
        self._is_stopping.set()
        if now:
            self._is_hasty.set()

    def stats(self) -> WorkerStats:
        """May be called from any thread."""
        waiting = self._runner.waiting if self._runner is not None else 0
        return self._tally.stats(in_flight=max(len(self._items) - waiting, 0), waiting=waiting)

    async def run(self) -> None:
        """Work until stopped, or until the queue is empty if that was asked for.

        Raises what made going on impossible; items were given back as far as could be.
        """
        client = await self._connect()
        if client is not None:
            async with contextlib.aclosing(client):
                await self._work(client)

    async def _connect(self) -> AsyncClient | None:
        """None when told to stop before the server was there."""

        async def connect() -> AsyncClient:
            return await connect_async(
                self._settings.address,
                connect_timeout=self._settings.connect_seconds,
                retry_timeout=_RETRY_SECONDS,
            )

        connecting = asyncio.ensure_future(connect())
        stopping = asyncio.ensure_future(self._is_stopping.wait())
        try:
            await asyncio.wait([connecting, stopping], return_when=asyncio.FIRST_COMPLETED)
        finally:
            stopping.cancel()
            if not connecting.done():
                connecting.cancel()
                await asyncio.wait([connecting])
        return None if connecting.cancelled() else connecting.result()

    async def _work(self, client: AsyncClient) -> None:
        settings = self._settings
        queue = self._watch(client.queue(settings.queue, must_exist=True))
        self._heartbeat = Heartbeat(queue, self._contact, settings.lease_seconds, self._lose)
        self._outlet = Outlet(
            queue, self._contact, self._tally, self._journal, self._settled, settings.on_refused
        )
        runner = self._runner = make_runner(settings, self._finished)
        self._intake = Intake(
            client,
            queue,
            settings,
            self._contact,
            self._tally,
            self._journal,
            self._items,
            self._take,
            is_until_empty=self._is_until_empty,
        )
        polling = asyncio.ensure_future(self._intake.run())
        beating = asyncio.ensure_future(self._heartbeat.run())
        stopping = asyncio.ensure_future(self._is_stopping.wait())
        ends: list[asyncio.Future[Any]] = [polling, beating, stopping, self._outlet.failure]
        try:
            ended, _ = await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            await _cancelled(polling)
            await self._wind_down(runner)
        finally:
            for task in (polling, beating, stopping):
                await _cancelled(task)
            await self._outlet.close()
            self._runner = None
            await runner.close()
        for end in ended:
            end.result()

    # --- the way of an item -----------------------------------------------------------------------

    def _take(self, lease: AsyncLease) -> None:
        held = HeldLease(lease.id, len(lease), asyncio.get_running_loop().time())
        items = [WorkItem(item, held) for item in lease.items]
        self._heartbeat.add(held)
        self._items.update(items)
        self._is_empty_handed.clear()
        if not self._has_had_items:
            self._has_had_items = True
            self.on_milestone()
        assert self._runner is not None
        self._runner.put(items)

    def _finished(self, finished: Sequence[Finished]) -> None:
        items, outlet = self._items, self._outlet
        lost: list[WorkItem] = []
        for item, outcome in finished:
            if item not in items:
                continue  # given back already, for want of time
            items.remove(item)
            if item.lease.is_lost:
                if outcome is not Unfinished.NOT_BEGUN:
                    lost.append(item)
            elif isinstance(outcome, bytes):
                outlet.complete(item, outcome)
            elif isinstance(outcome, Failed):
                self._complaints.note(item, outcome.error)
                outlet.fail(item, outcome)
            elif isinstance(outcome, Unfinished):
                outlet.release([item])
            else:
                assert_never(outcome)
        if lost:
            outlet.refuse(lost, reason="the lease ended while the handler was at work")
        self._look()

    def _look(self) -> None:
        if not self._items:
            self._is_empty_handed.set()
        self._intake.look()

    def _settled(self, lease: HeldLease, count: int) -> None:
        lease.left -= count
        if lease.left == 0:
            self._heartbeat.forget(lease)
        if not self._has_finished and (self._tally.done or self._tally.failed):
            self._has_finished = True
            self.on_milestone()
        self._look()

    def _lose(self, lease: HeldLease) -> None:
        """Handlers that run are cancelled, or can see it; what has not begun is dropped."""
        lease.is_lost = True
        if self._runner is not None:
            self._runner.cancel(lease)

    # --- the end ----------------------------------------------------------------------------------

    async def _wind_down(self, runner: Runner) -> None:
        """Give back what has not begun, wait for what has, give back what does not end in time."""
        self._give_back(runner.withdraw())
        hurrying = asyncio.ensure_future(self._is_hasty.wait())
        handling = asyncio.ensure_future(self._is_empty_handed.wait())
        await asyncio.wait(
            [hurrying, handling],
            timeout=self._settings.grace_seconds,
            return_when=asyncio.FIRST_COMPLETED,
        )
        if not handling.done():
            if runner.can_cancel:
                runner.cancel()
                await asyncio.wait([handling], timeout=_CANCEL_SECONDS)
            if self._items:
                self._tally.abandoned = len(self._items)
                self._journal.warning(
                    "handlers_abandoned", count=len(self._items), ids=shown_ids(self._items)
                )
            self._give_back(list(self._items))
        await _cancelled(handling)
        seconds = _HASTY_WORDS_SECONDS if self._is_hasty.is_set() else _LAST_WORDS_SECONDS
        emptying = asyncio.ensure_future(self._outlet.wait_empty())
        await asyncio.wait(
            [emptying, *([] if hurrying.done() else [hurrying])],
            timeout=seconds,
            return_when=asyncio.FIRST_COMPLETED,
        )
        if not emptying.done():
            self._journal.warning("results_abandoned", count=self._tally.unreported)
        await _cancelled(emptying)
        await _cancelled(hurrying)

    def _give_back(self, items: list[WorkItem]) -> None:
        self._items.difference_update(items)
        held = [item for item in items if not item.lease.is_lost]
        if held:
            self._outlet.release(held)
        self._look()


async def _cancelled(task: "asyncio.Future[Any]") -> None:
    task.cancel()
    await asyncio.wait([task])
