"""The shell around the engine: what every verb of the service does beside its own work.

A verb checks its arguments, then has the shell write: the write is done when the verb returns, and
the awaitable that it returns ends once the write is durable. So a refusal is raised by the call
itself, and nothing is answered too early. Three verbs return before they write: a poll leases items
in the first turn of its awaitable, because a call that never gets that far has nobody to give them
back, and a load's parts and commits wait for files. Everything here runs on the loop's thread.
"""

from collections.abc import Awaitable, Callable, Coroutine, Hashable
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import structlog

from queueber.clock import Clock
from queueber.db.records.keys import NEVER_MS
from queueber.engine.kernel.transaction import Transaction
from queueber.engine.open import Engine
from queueber.engine.queue.queue_state import QueueState
from queueber.errors import QueueberError, ResourceExhausted
from queueber.limits import PAYLOAD_BYTES_MAX, SECOND_MS, answer_bytes_max
from queueber.service.commit_group import CommitGroup, CommitMeasures
from queueber.service.loop import Future, Loop, fail
from queueber.service.session import Admission, QueueHandle, Session
from queueber.service.shared_writes import Call, Columns, Held, SharedWrites, Verb, Write


class Wakeups:
    """The futures that wait, by what they wait for, in the order in which they came."""

    def __init__(self) -> None:
        self._futures: dict[object, dict[Future, None]] = {}

    def add(self, key: object, future: Future) -> None:
        self._futures.setdefault(key, {})[future] = None

    def discard(self, key: object, future: Future) -> None:
        waiting = self._futures.get(key)
        if waiting is not None and future in waiting:
            del waiting[future]
            if not waiting:
                del self._futures[key]

    def fire(self, key: object) -> None:
        for future in list(self._futures.get(key, ())):
            if not future.done():
                future.set_result(None)

    def fire_all(self) -> None:
        for key in list(self._futures):
            self.fire(key)


_log = structlog.get_logger("queueber.service")

_OFTEN = frozenset({"topic_created", "topic_deleted", "topic_forked"})
LINES_A_SECOND_MAX = 20
"""Of these events that operators see in a second of the server's clock."""

T = TypeVar("T")

Facts = Callable[[Any], dict[str, object] | None]
"""What the log says of an answer; None: this one is not logged."""


@dataclass(frozen=True, slots=True)
class ServiceLimits:
    """What an operator may set; see `config.py`."""

    item_bytes_max: int
    message_bytes_max: int
    poll_items_max: int
    poll_wait_ms_max: int
    waiting_polls_max: int
    payload_bytes_max: int = PAYLOAD_BYTES_MAX
    auto_create_topics: bool = True

    @property
    def answer_bytes_max(self) -> int:
        return answer_bytes_max(
            item_bytes_max=self.item_bytes_max, message_bytes_max=self.message_bytes_max
        )

    @property
    def slice_bytes_max(self) -> int:
        """Most bytes of messages in one answer."""
        return answer_bytes_max(
            item_bytes_max=self.payload_bytes_max, message_bytes_max=self.message_bytes_max
        )


class Shell:
    def __init__(
        self,
        engine: Engine,
        *,
        clock: Clock,
        loop: Loop,
        admission: Admission,
        limits: ServiceLimits,
        commits: CommitGroup | None,
        wake_sweeper: Callable[[], None],
        wake_reclaimer: Callable[[], None] = lambda: None,
        background: Executor | None = None,
    ) -> None:
        """`commits` is None when answers need not wait for the disk, `background` when long work
        may block the loop."""
        self.engine = engine
        self._kernel = engine.kernel
        self.clock = clock
        self.loop = loop
        self.admission = admission
        self.limits = limits
        self._commits = commits
        self._wake_sweeper = wake_sweeper
        self.wake_reclaimer = wake_reclaimer
        self._background = background
        self._sweeper_wakes_at_ms = NEVER_MS
        self.wakeups = Wakeups()
        self.serve_waiting_polls: Callable[[QueueState], None] = lambda _: None
        """Set by the polls: gives them what a write has made ready."""
        self.waiting = 0
        """Calls that wait for items, results or messages."""
        self._lines_of = self._lines = 0
        """A second, and how many lines there were in it; see `log_topic`."""
        self._shared = SharedWrites()
        if commits is not None:
            commits.before_sync = self._shared.write_all

    # --- writing ----------------------------------------------------------------------------------

    def write(
        self,
        queue: QueueHandle,
        op: Callable[..., T],
        *arguments: Any,
        event: str,
        facts: Facts | None = None,
    ) -> Coroutine[Any, Any, T]:
        """Do an operation of the engine; the awaitable ends once it is durable.

        The event is logged for debugging; one with `facts` is for operators, and is logged with its
        caller.
        """
        state = queue.state
        queue.check_alive()
        self.write_gathered(state)
        answer = self.run(state, op, *arguments)
        if facts is None:
            ids = getattr(answer, "ids", ())
            _log.debug(event, queue=state.name, ids=ids, answer=answer)
        else:
            self.log(queue.session, event, state.name, facts(answer))
        self.after_write(state)
        return self.durable(answer)

    def run(self, state: Any, op: Callable[..., T], *arguments: Any) -> T:
        """Do an operation in a transaction of its own: on a queue, or None for the set of them."""
        tx = Transaction(self._kernel, self.clock.now_ms(), state)
        answer = op(tx, *arguments)
        tx.commit()
        return answer

    def share(self, queue: QueueHandle, verb: Verb, columns: Columns, count: int) -> Awaitable[Any]:
        """As `write`, for a call of `count` items that may be written together with others."""
        call = Call(columns, count)
        self.gather(queue, verb, partial(self._write_calls, verb), call)
        answer: Awaitable[Any] = call.future
        return answer

    def gather(self, queue: Held, kind: object, write: Write, call: Call) -> None:
        """Have the call written before the next sync, with others of its kind."""
        queue.check_alive()
        call.future = self.loop.create_future()
        if self._commits is None:
            write(queue.state, [call])
        else:
            self._shared.gather(queue, kind, write, call)
            self._commits.sync_soon()

    def write_gathered(self, state: Hashable, session: Session | None = None) -> None:
        """Write the calls on the queue that were gathered so far; with a session, only if some of
        them are its own."""
        if session is None:
            self._shared.write(state)
        else:
            self._shared.write_before(state, session)

    def _write_calls(self, verb: Verb, state: QueueState, calls: list[Call]) -> None:
        try:
            self._write_together(state, verb, calls)
        except Exception as error:  # noqa: BLE001  it belongs to whoever waits
            if len(calls) > 1 and isinstance(error, QueueberError):
                for call in calls:
                    self._write_calls(verb, state, [call])
            else:
                for call in calls:
                    fail(call.future, error)
            return
        self.after_write(state)
        if verb.brings_results:
            self.wakeups.fire((state.queue_id, None))

    def _write_together(self, state: QueueState, verb: Verb, calls: list[Call]) -> None:
        columns = calls[0].columns if len(calls) == 1 else verb.join([c.columns for c in calls])
        answer = self.run(state, verb.op, *columns)
        answers = (
            [answer] if len(calls) == 1 else verb.split(answer, [call.count for call in calls])
        )
        for call, own in zip(calls, answers, strict=True):
            named = getattr(own, "ids", call.columns[0])
            _log.debug(verb.event, queue=state.name, ids=named, answer=own)
            self.answer(call, own)

    def answer(self, call: Call, answer: object) -> None:
        """Answer a call that was written, once it is durable."""
        call.answer = answer
        self._set_durably(call.future, answer, call.count)

    def _set_durably(self, future: Future, answer: object, items: int = 1) -> None:
        if self._commits is not None:
            self._commits.answer(future, answer, items)
        elif not future.done():
            future.set_result(answer)

    def log(
        self, session: Session, event: str, queue: str, facts: dict[str, object] | None
    ) -> None:
        """Tell operators what a caller did."""
        if facts is not None:
            _log.info(event, queue=queue, **facts, **session.who)

    def log_topic(self, session: Session, event: str, topic: str, facts: dict[str, object]) -> None:
        """The same about a topic. Programs create and delete topics by the million, and a line
        takes as long as a topic: those beyond the first of a second are for `debug`."""
        tell = _log.info
        if event in _OFTEN:
            second = self.clock.now_ms() // SECOND_MS
            if second != self._lines_of:
                self._lines_of, self._lines = second, 0
            self._lines += 1
            tell = _log.info if self._lines <= LINES_A_SECOND_MAX else _log.debug
        tell(event, topic=topic, **facts, **session.who)

    def after_write(self, state: QueueState) -> None:
        """Wake whoever waits for what a write may have brought."""
        self.serve_waiting_polls(state)
        if finished := state.batches.finished:
            for name in sorted(finished):
                self.wakeups.fire((state.queue_id, name))
            finished.clear()
        self.wake_sweeper_for(self._kernel.agenda.next_ms())
        if self.engine.loads.stale_directories:
            self.wake_reclaimer()

    @property
    def commit_measures(self) -> CommitMeasures | None:
        """How writes became durable; None when no answer waits for that."""
        return None if self._commits is None else self._commits.measures

    @property
    def waits_for_disk(self) -> bool:
        """Whether what is written becomes durable only later."""
        return self._commits is not None

    def durable_future(self) -> Future:
        """A future that ends once everything written so far is durable."""
        future = self.loop.create_future()
        self._set_durably(future, None)
        return future

    async def durable(self, answer: T) -> T:
        if self._commits is not None:
            await self._commits.wait()
        return answer

    # --- the sweeper ------------------------------------------------------------------------------

    def wake_sweeper_for(self, due_ms: int) -> None:
        """Wake the sweeper if it would come too late."""
        if due_ms < self._sweeper_wakes_at_ms:
            self._sweeper_wakes_at_ms = 0
            self._wake_sweeper()

    def sweeper_sleeps_until(self, due_ms: int) -> None:
        self._sweeper_wakes_at_ms = due_ms

    # --- waiting ----------------------------------------------------------------------------------

    def check_may_wait(self, session: Session) -> None:
        if self.waiting >= self.limits.waiting_polls_max:
            raise ResourceExhausted(
                f"{self.waiting} calls are waiting, the limit; call again later"
            )
        session.check_may_wait()

    async def wait(self, session: Session, future: Future) -> Any:
        """Wait for a future without counting as a call under way."""
        session.leave()
        session.waiting += 1
        self.waiting += 1
        try:
            return await future
        finally:
            self.waiting -= 1
            session.waiting -= 1
            session.enter()

    async def in_background(self, work: Callable[[], T]) -> T:
        if self._background is None:
            return work()
        answer: T = await self.loop.run_in_executor(self._background, work)
        return answer

    async def sleep(self, ms: int) -> None:
        over = self.loop.create_future()
        self.loop.call_later(ms / 1000, wake, over)
        await over

    async def next_turn(self) -> None:
        """Let other calls have a turn of the loop."""
        turn = self.loop.create_future()
        self.loop.call_soon(turn.set_result, None)
        await turn


def wake(future: Future) -> None:
    if not future.done():
        future.set_result(None)
