"""One run of a server, from start to crash: service and sweeper on a simulated disk."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from random import Random
from typing import Any, TypeAlias

from faults.simulation.commits import SimulatedCommits
from faults.simulation.disk import Crashed, Disk
from faults.simulation.loop import SimulatedClock, SimulatedLoop
from faults.simulation.memory_store import MemoryStore
from faults.simulation.sweeping import sweep_when_due
from queueber.engine.open import open_engine
from queueber.errors import QueueberError
from queueber.ids import IdSource
from queueber.limits import KIB, MINUTE_MS
from queueber.service.service import Service
from queueber.service.session import Admission, QueueHandle, Session
from queueber.service.shell import ServiceLimits, Shell
from queueber.service.unread_answers import AnswerBudget

Verb: TypeAlias = Callable[[Service], Awaitable[Any]]
"""The call to the service."""
Reply: TypeAlias = Callable[[Any, BaseException | None], None]

_LIMITS = ServiceLimits(
    item_bytes_max=64 * KIB,
    message_bytes_max=64 * KIB,
    poll_items_max=100,
    poll_wait_ms_max=MINUTE_MS,
    waiting_polls_max=100,
)
_CALLS_MAX = 100


class Server:
    def __init__(
        self,
        disk: Disk,
        *,
        clock: SimulatedClock,
        loop: SimulatedLoop,
        random: Random,
        sync_seconds: Callable[[], float],
        on_sync_failure: Callable[[BaseException], None],
        on_bug: Callable[[BaseException], None],
    ) -> None:
        self.disk = disk
        self._loop = loop
        self._on_bug = on_bug
        self._tasks: set[asyncio.Task[None]] = set()
        self.store = MemoryStore(disk, gives_up=lambda: random.random() < 0.1)
        engine = open_engine(self.store, IdSource(random))
        sweeper_woken = asyncio.Event()
        self.admission = Admission(loop, _CALLS_MAX)
        self.service = Service(
            Shell(
                engine,
                clock=clock,
                loop=loop,
                admission=self.admission,
                limits=_LIMITS,
                commits=SimulatedCommits(loop, disk, sync_seconds, on_sync_failure),
                wake_sweeper=sweeper_woken.set,
            )
        )
        self.session = Session(self.admission, AnswerBudget())
        """A session for the code that inspects the queues."""
        self.begin(sweep_when_due(self.service, sweeper_woken))

    def handle(self, queue: str) -> QueueHandle:
        return self.service.queues.handle(queue, self.session)

    def begin(self, doing: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        """Start a task that ends with the server."""
        task = self._loop.create_task(self._guarded(doing))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _guarded(self, doing: Coroutine[Any, Any, None]) -> None:
        try:
            await doing
        except Crashed:
            pass
        except Exception as error:  # noqa: BLE001  a bug of ours
            if not self.disk.is_dead:
                self._on_bug(error)

    def call(self, verb: Verb, reply: Reply, session: Session) -> "asyncio.Task[None] | None":
        """Handle a call: run its immediate part, then start the task that answers."""
        try:
            session.admit()
            answer = verb(self.service)
        except QueueberError as error:
            reply(None, error)
        except Crashed:
            pass
        except Exception as error:  # noqa: BLE001  a bug of ours
            self._on_bug(error)
        else:
            return self.begin(self._answer(answer, reply, session))
        return None

    async def _answer(self, answer: Awaitable[Any], reply: Reply, session: Session) -> None:
        session.enter()
        try:
            found = await answer
        except QueueberError as error:
            reply(None, error)
        else:
            reply(found, None)
        finally:
            session.leave()

    def bury(self) -> list["asyncio.Task[None]"]:
        """Cancel all its tasks after a crash."""
        self.disk.crash()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        return tasks
