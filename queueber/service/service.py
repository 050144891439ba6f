"""The service: the engine's verbs for many callers at once.

A verb checks its input and writes before it returns; the awaitable that it returns ends once the
write is durable. So a refusal is raised by the call itself, and nothing is answered too early.
Everything here runs on the loop's thread.
"""

import contextlib
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import structlog

from queueber.clock import Clock
from queueber.db.keys import NEVER_MS
from queueber.engine.add import add
from queueber.engine.expire import expire_lease
from queueber.engine.extend import extend
from queueber.engine.poll import poll
from queueber.engine.queues import configure_queue, create_queue, delete_queue, queue_stats
from queueber.engine.remove import remove
from queueber.engine.state import Engine, QueueState
from queueber.engine.sweep import sweep, sweep_queue
from queueber.errors import Internal, InvalidArgument, NotFound, ResourceExhausted, Unavailable
from queueber.limits import MESSAGE_OVERHEAD_BYTES, QUEUES_MAX
from queueber.model import NOTHING_POLLED, Polled, QueueSettings, Stats, Sweep
from queueber.service.checks import (
    check_add,
    check_count,
    check_ids,
    check_lease_ms,
    check_many,
    check_queue_name,
    check_settings,
    one_for_each,
)
from queueber.service.commit_group import CommitGroup
from queueber.service.gate import Gate
from queueber.service.loop import Loop
from queueber.service.waiters import Waiter, Waiters

T = TypeVar("T")

DEFAULT_QUEUE = "default"

_log = structlog.get_logger("queueber.service")


@dataclass(frozen=True, slots=True)
class ServiceLimits:
    """What an operator may set; see `config.py`."""

    item_bytes_max: int
    message_bytes_max: int
    poll_items_max: int
    poll_wait_ms_max: int
    waiting_polls_max: int


class Service:
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
    ) -> None:
        """`commits` is None when answers need not wait for the disk."""
        self._engine = engine
        self._clock = clock
        self._loop = loop
        self._commits = commits
        self._wake_sweeper = wake_sweeper
        self._sweeper_wakes_at_ms = NEVER_MS
        self._waiters = Waiters()
        self.gate = gate
        self.limits = limits
        if DEFAULT_QUEUE not in engine.queues:
            create_queue(engine, DEFAULT_QUEUE, QueueSettings(), clock.now_ms())
        self.default_queue = engine.queue(DEFAULT_QUEUE)

    # --- queues -----------------------------------------------------------------------------------

    def queue(self, name: str, *, must_exist: bool) -> Awaitable[QueueState]:
        """The queue, created with default settings when it is missing and may be."""
        check_queue_name(name)
        if not must_exist and name not in self._engine.queues:
            create_queue(self._engine, name, QueueSettings(), self._clock.now_ms())
            _log.info("queue_created", queue=name)
            return self._durable(self._engine.queue(name))
        return self._at_once(self._engine.queue(name))

    def create_queue(self, name: str, settings: QueueSettings) -> Awaitable[bool]:
        check_queue_name(name)
        check_settings(settings, self.limits.item_bytes_max)
        created = create_queue(self._engine, name, settings, self._clock.now_ms())
        if created:
            _log.info("queue_created", queue=name, settings=settings)
        return self._durable(created)

    def configure_queue(self, name: str, settings: QueueSettings) -> Awaitable[None]:
        check_settings(settings, self.limits.item_bytes_max)
        configure_queue(self._engine, name, settings)
        _log.info("queue_configured", queue=name, settings=settings)
        return self._durable(None)

    def delete_queue(self, name: str) -> Awaitable[bool]:
        if name == DEFAULT_QUEUE:
            raise InvalidArgument(f"name: the queue {DEFAULT_QUEUE!r} is always there")
        queue = self._engine.queues.get(name)
        deleted = delete_queue(self._engine, name)
        if queue is not None:
            for waiter in self._waiters.take_queue(queue.queue_id):
                waiter.fail(_deleted(queue))
            _log.info("queue_deleted", queue=name)
        return self._durable(deleted)

    def list_queues(self, after: str, limit: int) -> tuple[list[Stats], bool]:
        """Statistics of the queues after a name, and whether there are more."""
        names = sorted(name for name in self._engine.queues if name > after)
        limit = min(limit, QUEUES_MAX) or QUEUES_MAX
        shown = [self.stats(self._engine.queues[name]) for name in names[:limit]]
        return shown, len(names) > limit

    def stats(self, queue: QueueState) -> Stats:
        self._check_alive(queue)
        waiting = self._waiters.count(queue.queue_id)
        return queue_stats(self._engine, queue, waiting_polls=waiting, now_ms=self._clock.now_ms())

    # --- items ------------------------------------------------------------------------------------

    def add(
        self, queue: QueueState, contents: Sequence[bytes], delays_ms: Sequence[int]
    ) -> Awaitable[list[bytes]]:
        self._check_alive(queue)
        check_add(
            contents,
            delays_ms,
            item_bytes_max=self.limits.item_bytes_max,
            message_bytes_max=self.limits.message_bytes_max,
        )
        ids = add(self._engine, queue, contents, delays_ms, self._clock.now_ms())
        _log.debug("added", queue=queue.name, ids=ids)
        self._serve_waiters(queue)
        self._tell_sweeper()
        return self._durable(ids)

    def remove(
        self, queue: QueueState, ids: Sequence[bytes], leases: Sequence[bytes]
    ) -> Awaitable[list[bool]]:
        self._check_alive(queue)
        check_many("ids", len(ids))
        check_ids("ids", ids)
        check_ids("leases", leases)
        leases = one_for_each("leases", leases, len(ids))
        removed = remove(self._engine, queue, ids, leases, self._clock.now_ms())
        _log.debug("removed", queue=queue.name, ids=ids, removed=removed)
        return self._durable(removed)

    def extend(
        self, queue: QueueState, leases: Sequence[bytes], leases_ms: Sequence[int]
    ) -> Awaitable[list[bool]]:
        self._check_alive(queue)
        check_many("leases", len(leases))
        check_ids("leases", leases)
        leases_ms = one_for_each("leaseValiditiesMs", leases_ms, len(leases))
        for lease_ms in leases_ms:
            check_lease_ms(lease_ms)
        extended = extend(self._engine, queue, leases, leases_ms, self._clock.now_ms())
        _log.debug("extended", queue=queue.name, leases=leases, extended=extended)
        self._tell_sweeper()
        return self._durable(extended)

    def poll(
        self, queue: QueueState, count: int, *, lease_ms: int, wait_ms: int
    ) -> Coroutine[Any, Any, Polled]:
        """Lease up to `count` items; with none ready, wait for them up to `wait_ms`.

        Cancelling the awaitable gives back what it had been given, unanswered.
        """
        self._check_alive(queue)
        count = count or 1
        check_count(count, self.limits.poll_items_max)
        check_lease_ms(lease_ms)
        return self._poll(queue, count, lease_ms, min(wait_ms, self.limits.poll_wait_ms_max))

    def poll_many(
        self, queue: QueueState, counts: Sequence[int], *, lease_ms: int
    ) -> Coroutine[Any, Any, list[Polled]]:
        """Several polls, each under a lease of its own. Never waits."""
        self._check_alive(queue)
        check_many("counts", len(counts))
        counts = [count or 1 for count in counts]
        check_count(sum(counts), self.limits.poll_items_max)
        check_lease_ms(lease_ms)
        return self._poll_many(queue, counts, lease_ms)

    # --- time and shutdown ------------------------------------------------------------------------

    def sweep(self) -> bool:
        """Do one slice of what is due; False when nothing was."""
        swept = sweep(self._engine, self._clock.now_ms())
        if swept is not None:
            self._swept(swept)
        return swept is not None

    def next_due_in_ms(self) -> int | None:
        """How long nothing will be due; None when nothing ever will, as things stand."""
        due_ms = self._sweeper_wakes_at_ms = self._engine.agenda.next_ms()
        return None if due_ms == NEVER_MS else max(0, due_ms - self._clock.now_ms())

    async def drain(self) -> None:
        """Let no call in any more, answer the polls that wait, and wait until no call is left."""
        self.gate.close()
        for waiter in self._waiters.take_all():
            waiter.answer(NOTHING_POLLED)
        # The polls that were just answered count as calls again after their next turn.
        turn = self._loop.create_future()
        self._loop.call_soon(turn.set_result, None)
        await turn
        await self.gate.wait_idle()

    # --- how it is done ---------------------------------------------------------------------------

    def _check_alive(self, queue: QueueState) -> None:
        if queue.is_deleted:
            raise _deleted(queue)

    async def _at_once(self, answer: T) -> T:
        return answer

    async def _durable(self, answer: T) -> T:
        if self._commits is not None:
            await self._commits.wait()
        return answer

    def _tell_sweeper(self) -> None:
        if self._engine.agenda.next_ms() < self._sweeper_wakes_at_ms:
            self._sweeper_wakes_at_ms = 0
            self._wake_sweeper()

    async def _poll(self, queue: QueueState, count: int, lease_ms: int, wait_ms: int) -> Polled:
        polled = self._take_now(queue, [count], lease_ms)[0]
        if not polled.ids and wait_ms > 0 and not self.gate.is_closed:
            polled = await self._wait_for_items(queue, count, lease_ms, wait_ms)
        if polled.ids:
            await self._hand_over(queue, [polled])
        return polled

    async def _poll_many(
        self, queue: QueueState, counts: Sequence[int], lease_ms: int
    ) -> list[Polled]:
        answers = self._take_now(queue, counts, lease_ms)
        given = [polled for polled in answers if polled.ids]
        if given:
            await self._hand_over(queue, given)
        return answers

    def _swept(self, swept: Sweep) -> None:
        if swept.expired or swept.promoted:
            _log.debug(
                "swept", queue=swept.queue_name, expired=swept.expired, promoted=swept.promoted
            )
            self._serve_waiters(self._engine.queue(swept.queue_name))

    def _take_now(self, queue: QueueState, counts: Sequence[int], lease_ms: int) -> list[Polled]:
        self._check_alive(queue)  # other calls may have come between the check and this turn
        # What became due since the sweeper last looked is to be had now, whoever comes first.
        now_ms = self._clock.now_ms()
        if self._engine.agenda.due_ms(queue.queue_id) <= now_ms:
            self._swept(sweep_queue(self._engine, queue, now_ms))
        return self._take(queue, counts, lease_ms)

    def _take(self, queue: QueueState, counts: Sequence[int], lease_ms: int) -> list[Polled]:
        answers = poll(
            self._engine,
            queue,
            counts,
            lease_ms=lease_ms,
            answer_bytes_max=self.limits.message_bytes_max - MESSAGE_OVERHEAD_BYTES,
            now_ms=self._clock.now_ms(),
        )
        if answers[0].ids:
            _log.debug("polled", queue=queue.name, leases=[(a.lease_id, a.ids) for a in answers])
            self._tell_sweeper()
        return answers

    async def _wait_for_items(
        self, queue: QueueState, count: int, lease_ms: int, wait_ms: int
    ) -> Polled:
        if self._waiters.total >= self.limits.waiting_polls_max:
            raise ResourceExhausted(
                f"{self._waiters.total} polls are waiting, the limit; poll again later"
            )
        waiter = Waiter(self._loop.create_future(), count, lease_ms)
        self._waiters.append(queue.queue_id, waiter)
        timer = self._loop.call_later(wait_ms / 1000, waiter.answer, NOTHING_POLLED)
        self.gate.leave()
        try:
            polled: Polled = await waiter.future
        except BaseException:
            # The caller hung up, perhaps in the very turn in which it was served.
            future = waiter.future
            if future.done() and not future.cancelled() and future.exception() is None:
                self._take_back(queue, [future.result()])
            raise
        finally:
            self.gate.enter()
            timer.cancel()
            self._waiters.discard(queue.queue_id, waiter)
        return polled

    async def _hand_over(self, queue: QueueState, given: list[Polled]) -> None:
        """Wait until the leases are durable; if the caller hangs up meanwhile, take them back."""
        try:
            await self._durable(None)
        except Internal:
            raise  # the sync failed: nothing is written any more
        except BaseException:
            self._take_back(queue, given)
            raise

    def _take_back(self, queue: QueueState, given: list[Polled]) -> None:
        if queue.is_deleted:
            return
        for polled in given:
            if polled.ids:
                _log.debug("taken_back", queue=queue.name, lease=polled.lease_id)
                # If the disk is full, the lease ends when it expires.
                with contextlib.suppress(Unavailable):
                    expire_lease(self._engine, queue, polled.lease_id, self._clock.now_ms())
        self._serve_waiters(queue)

    def _serve_waiters(self, queue: QueueState) -> None:
        """Give ready items to the polls that wait, in the order in which they came."""
        while queue.counters.ready and (waiter := self._waiters.first(queue.queue_id)) is not None:
            self._waiters.discard(queue.queue_id, waiter)
            if waiter.future.done():
                continue
            try:
                polled = self._take(queue, [waiter.count], waiter.lease_ms)[0]
            except Unavailable as error:
                waiter.fail(error)
            else:
                waiter.answer(polled)


def _deleted(queue: QueueState) -> NotFound:
    return NotFound(f"queue {queue.name!r} was deleted; ask for it again to create it anew")
