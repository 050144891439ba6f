"""A service with its sweeper, on the virtual clock of trio."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from random import Random

import trio
import trio.testing

from queueber.db.store.contract import Store
from queueber.db.store.rocks import RocksStore
from queueber.engine.open import open_engine
from queueber.ids import IdSource
from queueber.model import NewItems, QueueSettings
from queueber.service.queues import DEFAULT_QUEUE
from queueber.service.service import Service
from queueber.service.session import Admission, Session
from queueber.service.shell import Shell
from queueber.service.unread_answers import AnswerBudget
from queueber.sweeper.loops import Sweeper
from tests.support.folders import quick_folder, remove_folder
from tests.support.operations import create_queue
from tests.support.service_rig import limits

START_MS = 1_700_000_000_000


class TrioClock:
    """The service's time, taken from trio's."""

    def now_ms(self) -> int:
        return START_MS + round(trio.current_time() * 1000)


class WatchedService(Service):
    """Notes when it was swept."""

    swept_at_ms: list[int]

    def sweep(self) -> bool:
        self.swept_at_ms.append(self.shell.clock.now_ms() - START_MS)
        return super().sweep()


class SweeperRig:
    def __init__(self, store: Store, loop: asyncio.AbstractEventLoop) -> None:
        self.store = store
        self.loop = loop
        self.sweeper = Sweeper()
        self.engine = open_engine(store, IdSource(Random(1)))
        if DEFAULT_QUEUE not in self.engine.queues:
            # Items that failed or were lost come back at once.
            create_queue(self.engine, DEFAULT_QUEUE, QueueSettings(backoff_ms=(0,)), START_MS)
        admission = Admission(loop, calls_max=10)
        self.session = Session(admission, AnswerBudget())
        self.service = WatchedService(
            Shell(
                self.engine,
                clock=TrioClock(),
                loop=loop,
                admission=admission,
                limits=limits(),
                commits=None,
                wake_sweeper=self.sweeper.wake,
            )
        )
        self.service.swept_at_ms = []
        self.queue = self.service.queues.handle(DEFAULT_QUEUE, self.session)

    @property
    def swept_at_ms(self) -> list[int]:
        """When the sweeper looked, from the start."""
        return self.service.swept_at_ms

    @property
    def now_ms(self) -> int:
        return TrioClock().now_ms()

    async def add(
        self, *contents: bytes, delay_ms: int = 0, keys: Sequence[str] = (), batch: str = ""
    ) -> list[bytes]:
        delays_ms = [delay_ms] * len(contents) if delay_ms else []
        items = NewItems(contents, delays_ms, keys=keys, batch=batch)
        return list((await self.service.items.add(self.queue, items)).ids)

    @property
    def ready(self) -> int:
        return self.queue.state.counters.ready


@contextmanager
def _rig() -> Iterator[SweeperRig]:
    folder = quick_folder()
    # The service asks its loop for futures only when a poll waits; none does here.
    loop = asyncio.new_event_loop()
    try:
        with RocksStore(folder / "data") as store:
            yield SweeperRig(store, loop)
    finally:
        loop.close()
        remove_folder(folder)


def run_with_sweeper(body: Callable[[SweeperRig], Awaitable[None]]) -> None:
    """Run a test beside a sweeper, on time that jumps whenever nobody has anything to do."""

    async def main() -> None:
        with _rig() as rig:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(rig.sweeper.run, rig.service)
                await trio.testing.wait_all_tasks_blocked()
                await body(rig)
                nursery.cancel_scope.cancel()

    trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))


def run_alone(body: Callable[[SweeperRig], Awaitable[None]]) -> None:
    """Run a test that calls the sweeper itself."""

    async def main() -> None:
        with _rig() as rig:
            await body(rig)

    trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))


async def sleep_ms(ms: int) -> None:
    await trio.sleep(ms / 1000)
    await trio.testing.wait_all_tasks_blocked()
