"""What every verb of the service builds on.

A verb checks its input and writes before it returns; the awaitable that it returns ends once the
write is durable. So a refusal is raised by the call itself, and nothing is answered too early.
Everything here runs on the loop's thread.
"""

from collections import deque
from collections.abc import Callable, Coroutine, Hashable
from dataclasses import dataclass
from typing import Any, TypeVar
from weakref import WeakValueDictionary

from queueber.clock import Clock
from queueber.db.bulk.stage import Stage
from queueber.db.records.keys import NEVER_MS
from queueber.db.store.contract import Snapshot
from queueber.engine.kernel.state import Engine, QueueState
from queueber.engine.queue.queues import create_queue
from queueber.engine.queue.view import View
from queueber.errors import NotFound, ResourceExhausted
from queueber.limits import answer_bytes_max
from queueber.model import LoadRef, PartRef, QueueSettings
from queueber.service.background_thread import Aside
from queueber.service.bound_leases import BoundLeases
from queueber.service.commit_group import CommitGroup
from queueber.service.gate import Gate
from queueber.service.loop import Future, Loop
from queueber.service.waiters import PollCall, Waiters
from queueber.service.wakeups import Signals

T = TypeVar("T")

DEFAULT_QUEUE = "default"


@dataclass(frozen=True, slots=True)
class ServiceLimits:
    """What an operator may set; see `config.py`."""

    item_bytes_max: int
    message_bytes_max: int
    poll_items_max: int
    poll_wait_ms_max: int
    waiting_polls_max: int

    @property
    def answer_bytes_max(self) -> int:
        return answer_bytes_max(
            item_bytes_max=self.item_bytes_max, message_bytes_max=self.message_bytes_max
        )


@dataclass(slots=True)
class Ending:
    """The leases that a connection which is over had in one queue."""

    queue: QueueState
    leases: list[bytes]
    company: int
    """How many items the connection held in all."""


@dataclass(slots=True)
class KeptSnapshot:
    """A queue as it was, for those who read it in parts."""

    queue: QueueState
    view: View
    snapshot: Snapshot
    used_at_ms: int


class ServiceCore:
    def __init__(
        self,
        engine: Engine,
        *,
        clock: Clock,
        loop: Loop,
        gate: Gate,
        limits: ServiceLimits,
        commits: CommitGroup | None,
        wake_sweeper: Callable[[], None],
        wake_reclaimer: Callable[[], None] = lambda: None,
        aside: Aside | None = None,
    ) -> None:
        """`commits` is None when answers need not wait for the disk, `aside` when long work may
        hold up others."""
        self._engine = engine
        self._clock = clock
        self._loop = loop
        self._commits = commits
        self._wake_sweeper = wake_sweeper
        self._wake_reclaimer = wake_reclaimer
        self._aside = aside
        self._sweeper_wakes_at_ms = NEVER_MS
        self._waiters = Waiters()
        self._signals = Signals()
        self._bound = BoundLeases(engine.store)
        self._endings: deque[Ending] = deque()
        """What connections that are over held, and is to expire."""
        self._endings_retry_at_ms = 0
        self._snapshots: dict[bytes, KeptSnapshot] = {}
        # Weak: a call that ends in whatever way takes its name with it.
        self._poll_calls: WeakValueDictionary[Hashable, PollCall] = WeakValueDictionary()
        self._stage = Stage(engine.store.loads_path)
        self._load_commits: dict[tuple[int, LoadRef], Future] = {}
        self._parts_in_check: list[tuple[bytes, PartRef]] = []
        """Each as often as somebody waits for it."""
        self.gate = gate
        self.limits = limits
        if DEFAULT_QUEUE not in engine.queues:
            create_queue(engine, DEFAULT_QUEUE, QueueSettings(), clock.now_ms())
        self.default_queue = engine.queue(DEFAULT_QUEUE)
        loads = [load for queue in engine.queues.values() for load in queue.loads.values()]
        # Those of which nothing is known: a crash came before their files were removed.
        engine.stale_stages = self._stage.others({load.directory for load in loads})

    def _check_alive(self, queue: QueueState) -> None:
        if queue.is_deleted:
            raise deleted(queue)

    async def _at_once(self, answer: T) -> T:
        return answer

    async def _run_aside(self, work: Callable[[], T]) -> T:
        return work() if self._aside is None else await self._aside.run(work)

    async def _pause(self, pause_ms: int) -> None:
        over = self._loop.create_future()
        self._loop.call_later(pause_ms / 1000, wake, over)
        await over

    async def _turn(self) -> None:
        """Let others have a turn of the loop."""
        turn = self._loop.create_future()
        self._loop.call_soon(turn.set_result, None)
        await turn

    async def _durable(self, answer: T) -> T:
        if self._commits is not None:
            await self._commits.wait()
        return answer

    def _tell_sweeper(self) -> None:
        if self._engine.agenda.next_ms() < self._sweeper_wakes_at_ms:
            self._sweeper_wakes_at_ms = 0
            self._wake_sweeper()

    def _tell_reclaimer(self) -> None:
        """Files of loads that have ended are to go."""
        if self._engine.stale_stages:
            self._wake_reclaimer()

    def _tell_of_batches(self, queue: QueueState) -> None:
        """Wake those who wait for a batch that has just ended."""
        for name in sorted(queue.finished_batches):
            self._signals.fire((queue.queue_id, name))
        queue.finished_batches.clear()

    def _check_room_to_wait(self) -> None:
        waiting = self._waiters.total + self._signals.total
        if waiting >= self.limits.waiting_polls_max:
            raise ResourceExhausted(f"{waiting} calls are waiting, the limit; call again later")

    async def _await_aside(self, future: Future) -> Any:
        """Wait for a future without counting as a call under way."""
        self.gate.leave()
        try:
            return await future
        finally:
            self.gate.enter()

    def _wait_for(
        self, key: object, look: Callable[[], tuple[T, bool]], wait_ms: int
    ) -> Coroutine[Any, Any, T]:
        """Look until the second part of the answer says that it will do, or the time is up.

        Looks again whenever the signal `key` is fired.
        """
        answer, will_do = look()
        return self._keep_looking(key, look, answer, will_do=will_do, wait_ms=wait_ms)

    async def _keep_looking(
        self,
        key: object,
        look: Callable[[], tuple[T, bool]],
        answer: T,
        *,
        will_do: bool,
        wait_ms: int,
    ) -> T:
        ends_at_ms = self._clock.now_ms() + min(wait_ms, self.limits.poll_wait_ms_max)
        if not will_do:
            # Other calls may have come between the first look and this turn.
            answer, will_do = look()
        while not will_do and not self.gate.is_closed:
            left_ms = ends_at_ms - self._clock.now_ms()
            if left_ms <= 0:
                break
            self._check_room_to_wait()
            future = self._loop.create_future()
            self._signals.add(key, future)
            timer = self._loop.call_later(left_ms / 1000, wake, future)
            try:
                await self._await_aside(future)
            finally:
                timer.cancel()
                self._signals.discard(key, future)
            answer, will_do = look()
        return await self._durable(answer)


def wake(future: Future) -> None:
    if not future.done():
        future.set_result(None)


def deleted(queue: QueueState) -> NotFound:
    return NotFound(f"queue {queue.name!r} was deleted; ask for it again to create it anew")
