"""A service on a real store, on a loop whose time is virtual."""

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Hashable
from concurrent.futures import Executor
from contextlib import asynccontextmanager
from dataclasses import replace
from random import Random
from typing import Any, TypedDict, TypeVar, Unpack

from faults.simulation.sweeping import sweep_when_due
from queueber.clock import ManualClock
from queueber.db.store.contract import Store
from queueber.db.store.rocks import RocksStore
from queueber.engine.open import Engine, open_engine
from queueber.ids import IdSource
from queueber.limits import KIB, MIB, MINUTE_MS
from queueber.model import FailOutcome, NewItems, Polled, QueueSettings
from queueber.service.commit_group import CommitGroup
from queueber.service.queues import DEFAULT_QUEUE
from queueber.service.service import Service
from queueber.service.session import Admission, QueueHandle, Session
from queueber.service.shell import ServiceLimits, Shell
from queueber.service.unread_answers import AnswerBudget
from tests.support.folders import quick_folder, remove_folder
from tests.support.operations import create_queue
from tests.support.virtual_loop import VirtualLoop, run_virtually, turns

T = TypeVar("T")

LEASE_MS = 10 * MINUTE_MS


def limits(**changed: Any) -> ServiceLimits:
    usual = ServiceLimits(
        item_bytes_max=64 * KIB,
        message_bytes_max=MIB,
        poll_items_max=100,
        poll_wait_ms_max=MINUTE_MS,
        waiting_polls_max=1000,
    )
    return replace(usual, **changed)


class PollOptions(TypedDict, total=False):
    wait_ms: int
    lease_ms: int
    queue: QueueHandle
    connection: object
    name: Hashable


class ServiceRig:
    def __init__(
        self,
        store: Store,
        clock: ManualClock,
        loop: VirtualLoop,
        service_limits: ServiceLimits,
        commits: CommitGroup | None,
        background: Executor | None = None,
    ) -> None:
        self.store = store
        self.clock = clock
        self.loop = loop
        self.admission = Admission(loop, calls_max=1000)
        self.session = Session(self.admission, AnswerBudget(), address="tests:1")
        self.sweeper_wakes = 0
        self.reclaimer_wakes = 0
        self.sweeper_woken = asyncio.Event()
        self.engine: Engine = open_engine(store, IdSource(Random(1)))
        if DEFAULT_QUEUE not in self.engine.queues:
            # Items that failed or were lost come back at once.
            settings = QueueSettings(backoff_ms=(0,))
            create_queue(self.engine, DEFAULT_QUEUE, settings, clock.now_ms())
        self.service = Service(
            Shell(
                self.engine,
                clock=clock,
                loop=loop,
                admission=self.admission,
                limits=service_limits,
                commits=commits,
                wake_sweeper=self._wake_sweeper,
                wake_reclaimer=self._wake_reclaimer,
                background=background,
            )
        )
        self.queue: QueueHandle = self.service.queues.handle(DEFAULT_QUEUE, self.session)

    def _wake_sweeper(self) -> None:
        self.sweeper_wakes += 1
        self.sweeper_woken.set()

    def _wake_reclaimer(self) -> None:
        self.reclaimer_wakes += 1

    def restarted(self, background: Executor | None = None) -> "ServiceRig":
        """A service that finds the store as this one has left it."""
        return ServiceRig(self.store, self.clock, self.loop, self.service.limits, None, background)

    # --- calls, as an adapter makes them ----------------------------------------------------------

    def begin(self, answer: Awaitable[T]) -> "asyncio.Task[T]":
        """A call under way, counted by its session."""
        task = self.loop.create_task(self._counted(answer))
        if isinstance(answer, Coroutine):
            # A task that is cancelled before its first turn leaves it untouched.
            task.add_done_callback(lambda _: answer.close())
        return task

    async def _counted(self, answer: Awaitable[T]) -> T:
        self.session.enter()
        try:
            return await answer
        finally:
            self.session.leave()

    async def waiting(self, answer: Awaitable[T]) -> "asyncio.Task[T]":
        """A call that has begun and waits."""
        task = self.begin(answer)
        await turns()
        assert not task.done()
        return task

    def begin_poll(self, count: int = 1, **options: Unpack[PollOptions]) -> "asyncio.Task[Polled]":
        return self.begin(self._poll(count, options))

    async def waiting_poll(
        self, count: int = 1, **options: Unpack[PollOptions]
    ) -> "asyncio.Task[Polled]":
        """A poll that has found nothing and waits."""
        return await self.waiting(self._poll(count, options))

    def _poll(self, count: int, options: PollOptions) -> Awaitable[Polled]:
        return self.service.polls.poll(
            options.get("queue") or self.queue,
            count,
            lease_ms=options.get("lease_ms", LEASE_MS),
            wait_ms=options.get("wait_ms", MINUTE_MS),
            connection=options.get("connection"),
            name=options.get("name"),
        )

    async def poll_now(self, count: int = 1, **options: Unpack[PollOptions]) -> Polled:
        options["wait_ms"] = 0
        return await self.begin_poll(count, **options)

    async def add(
        self, *contents: bytes, delay_ms: int = 0, batch: str = "", queue: QueueHandle | None = None
    ) -> list[bytes]:
        delays_ms = [delay_ms] * len(contents) if delay_ms else []
        items = NewItems(contents, delays_ms, batch=batch)
        return list((await self.service.items.add(queue or self.queue, items)).ids)

    async def complete(self, polled: Polled, result: bytes = b"done") -> list[bool]:
        results = [result] * len(polled.ids)
        return await self.service.items.complete(self.queue, polled.ids, [polled.lease_id], results)

    async def fail(self, polled: Polled, *delays_ms: int) -> list[FailOutcome]:
        leases, errors = [polled.lease_id], ["it failed"]
        return await self.service.items.fail(self.queue, polled.ids, leases, errors, delays_ms)

    # --- what the sweeper does --------------------------------------------------------------------

    @asynccontextmanager
    async def sweeper(self) -> AsyncIterator[None]:
        """The sweeper's loop, on asyncio."""
        task = self.loop.create_task(sweep_when_due(self.service, self.sweeper_woken))
        await turns()
        try:
            yield
        finally:
            task.cancel()
            await asyncio.wait([task])


Body = Callable[[ServiceRig], Coroutine[Any, Any, None]]


def run_on_service(
    body: Body,
    service_limits: ServiceLimits | None = None,
    sync: "HeldSync | None" = None,
) -> None:
    """Run a test on a new service; with a `sync`, answers wait for it in a commit group."""
    clock = ManualClock()

    async def main() -> None:
        folder = quick_folder()
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        commits = None
        if sync is not None:
            sync.loop = loop
            commits = CommitGroup(loop, sync, on_failure=sync.failures.append)
        try:
            with RocksStore(folder / "data") as store:
                rig = ServiceRig(store, clock, loop, service_limits or limits(), commits)
                await body(rig)
        finally:
            if commits is not None and sync is not None:
                sync.let_all()
                commits.close()
            remove_folder(folder)

    run_virtually(clock, main())


def on_service(service_limits: ServiceLimits | None = None) -> Callable[[Body], Callable[[], None]]:
    """Make a test of a coroutine that takes a service."""

    def decorate(body: Body) -> Callable[[], None]:
        def test() -> None:
            run_on_service(body, service_limits)

        test.__doc__ = body.__doc__
        return test

    return decorate


class HeldSync:
    """A sync of the log that ends when the test lets it, or fails when the test says so."""

    def __init__(self) -> None:
        self.loop: asyncio.AbstractEventLoop | None = None
        self.begun = 0
        self.failures: list[BaseException] = []
        self._failure: BaseException | None = None
        self._may_end = threading.Semaphore(0)
        self._has_begun = asyncio.Event()

    def __call__(self) -> None:
        assert self.loop is not None
        self.loop.call_soon_threadsafe(self._note_begun)
        assert self._may_end.acquire(timeout=10), "the test never let the sync end"
        if self._failure is not None:
            raise self._failure

    def _note_begun(self) -> None:
        self.begun += 1
        self._has_begun.set()

    async def wait_begun(self, count: int) -> None:
        """Return once the sync has begun for the `count`-th time."""
        while self.begun < count:
            self._has_begun.clear()
            await self._has_begun.wait()

    def let(self) -> None:
        """Let one sync end."""
        self._may_end.release()

    def let_all(self) -> None:
        self._may_end.release(1000)

    def fail(self, failure: BaseException) -> None:
        """Let the sync under way, and all after it, end in failure."""
        self._failure = failure
        self._may_end.release()


def new_session(*, bytes_max: int = MIB, all_bytes_max: int = 4 * MIB) -> Session:
    """`bytes_max` is for answers that it has not read."""
    admission = Admission(asyncio.get_running_loop(), calls_max=10_000)
    return Session(admission, AnswerBudget(bytes_max=all_bytes_max, session_bytes_max=bytes_max))
