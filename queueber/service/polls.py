"""Polls: lease ready items to callers, or wait until there are some; first come, first served."""

import contextlib
from collections.abc import Coroutine, Hashable, Sequence
from functools import partial
from itertools import groupby, islice
from typing import Any
from weakref import WeakValueDictionary

import structlog

from queueber.clock import Clock
from queueber.engine.queue.poll import poll
from queueber.engine.queue.queue_state import QueueState
from queueber.engine.queue.release import release_lease
from queueber.engine.queue.sweep import sweep_queue
from queueber.errors import Internal, Unavailable
from queueber.limits import CAP_PASSES_MAX
from queueber.model import NOTHING_POLLED, Polled, Sweep
from queueber.service.bound_leases import BoundLeases
from queueber.service.lease_holders import LeaseHolders
from queueber.service.loop import Future, fail
from queueber.service.measures.waits import Waits
from queueber.service.session import QueueHandle, deleted
from queueber.service.shared_writes import Call
from queueber.service.shell import Shell
from queueber.service.unread_answers import AnswerMemory
from queueber.service.validate.arguments import check_lease_ms, check_many, check_total
from queueber.service.waiters import Asked, PollCall, Waiter, Waiters

_log = structlog.get_logger("queueber.service")


class Polls:
    def __init__(self, shell: Shell, bound: BoundLeases, holders: LeaseHolders) -> None:
        self._shell = shell
        self._bound = bound
        self._holders = holders
        self._waiters = Waiters()
        # Weak: a call that ends in whatever way takes its name with it.
        self._calls: WeakValueDictionary[Hashable, PollCall] = WeakValueDictionary()
        self.waits = Waits()
        self._passed_over: dict[QueueState, None] = {}
        """Queues with polls that wait because their connections hold too much."""

    def poll(
        self,
        queue: QueueHandle,
        count: int,
        *,
        lease_ms: int,
        wait_ms: int,
        connection: object | None = None,
        name: Hashable | None = None,
        memory: AnswerMemory | None = None,
        partition: int | None = None,
    ) -> Coroutine[Any, Any, Polled]:
        """Lease up to `count` items, and no more than the server allows; with none ready, wait for
        them up to `wait_ms`.

        A `lease_ms` of 0 is the queue's default. With a `connection`, the lease ends when that
        does. With a `name`, the poll can be withdrawn while it waits. The bytes of the answer
        are counted in `memory`. Cancelling the awaitable gives the items back. A poll of a group
        that shares messages may be for one `partition`.
        """
        queue.check_alive()
        limits = self._shell.limits
        count = min(count or 1, limits.poll_items_max)
        lease_ms = _lease_ms(queue, lease_ms)
        asked = Asked([count], lease_ms, queue.session.holder, connection, memory, partition)
        poll_call = PollCall()
        if name is not None:
            self._calls[name] = poll_call
        return self._poll(queue, asked, min(wait_ms, limits.poll_wait_ms_max), poll_call)

    def withdraw_poll(self, name: Hashable) -> None:
        """Answer a poll that still waits with nothing."""
        poll_call = self._calls.get(name)
        if poll_call is not None:
            poll_call.withdraw()

    def poll_many(
        self,
        queue: QueueHandle,
        counts: Sequence[int],
        *,
        lease_ms: int,
        connection: object | None = None,
        memory: AnswerMemory | None = None,
    ) -> Coroutine[Any, Any, list[Polled]]:
        """Several polls, each under a lease of its own. Never waits."""
        queue.check_alive()
        check_many("counts", len(counts))
        items_max = self._shell.limits.poll_items_max
        counts = [min(count or 1, items_max) for count in counts]
        check_total(counts, items_max)
        asked = Asked(counts, _lease_ms(queue, lease_ms), queue.session.holder, connection, memory)
        return self._poll_many(queue, asked)

    # --- for the other parts of the service -------------------------------------------------------

    def waiting(self, queue: QueueState) -> int:
        """How many polls wait for items of the queue."""
        return self._waiters.count(queue.queue_id)

    def queue_deleted(self, queue: QueueState) -> None:
        for waiter in self._waiters.take_queue(queue.queue_id):
            waiter.fail(deleted(queue))

    def answer_all(self) -> None:
        """The server stops: nothing comes any more."""
        for waiter in self._waiters.take_all():
            waiter.answer(NOTHING_POLLED)

    def swept(self, queue: QueueState, swept: Sweep) -> None:
        """The sweeper has moved items of a queue."""
        if swept.expired or swept.promoted:
            _log.debug(
                "swept", queue=swept.queue_name, expired=swept.expired, promoted=swept.promoted
            )
        # Whatever this slice did: a full disk may have cut short the one before it.
        self._shell.after_write(queue)

    # --- one poll ---------------------------------------------------------------------------------

    async def _poll(
        self, queue: QueueHandle, asked: Asked, wait_ms: int, poll_call: PollCall
    ) -> Polled:
        if poll_call.is_withdrawn:
            return NOTHING_POLLED
        (polled,) = await self._poll_many(queue, asked)
        if not polled.packed and wait_ms > 0 and not self._shell.admission.is_closed:
            polled = await self._wait_for_items(queue, asked, wait_ms, poll_call)
        return polled

    async def _poll_many(self, queue: QueueHandle, asked: Asked) -> list[Polled]:
        # Not earlier: a call that never gets this far has nobody to give its items back.
        call = Call((asked,), sum(asked.counts))
        self._shell.gather(queue, Polls, self._take_together, call)
        given: list[Polled] = await self._handed_over(queue.state, call.future, call)
        return given

    def _take_together(self, state: QueueState, calls: list[Call]) -> None:
        """Serve polls that were gathered, in the order in which they came."""
        shell = self._shell
        try:
            # What became due since the sweeper last looked is ready now, whoever comes first.
            kernel, now_ms = shell.engine.kernel, shell.clock.now_ms()
            if kernel.agenda.due_ms(state.queue_id) <= now_ms:
                self.swept(state, sweep_queue(kernel, state, now_ms))
            waiting = [call for call in calls if _may_answer(call.future, call.columns[0])]
            for _, group in groupby(waiting, lambda c: self._shared_terms(state, c.columns[0])):
                self._take_group(state, list(group))
        except Exception as error:  # noqa: BLE001  it belongs to whoever waits
            for call in calls:
                if call.answer is None:
                    fail(call.future, error)
        if any(call.answer for call in calls):
            # Quarantined items that no waiting poll could have may be out of the way now.
            self.serve(state)

    def _shared_terms(self, queue: QueueState, asked: Asked) -> object:
        """Equal for polls that may be served in one pass."""
        connection = asked.connection
        if connection is not None and self._bound.may_matter(queue, connection):
            return asked
        return asked.lease_ms, asked.partition

    def _take_alike(self, queue: QueueState, asked: Asked) -> list[Waiter]:
        """The next waiters that may be served together with one that asked for this."""
        waiters, queue_id = self._waiters, queue.queue_id
        terms, ready = self._shared_terms(queue, asked), self._ready_count(queue, asked.partition)
        taken: list[Waiter] = []
        while len(taken) + 1 < ready and (waiter := waiters.first(queue_id)) is not None:
            if self._shared_terms(queue, waiter.asked) != terms:
                break
            waiters.discard(queue_id, waiter)
            if _may_answer(waiter.future, waiter.asked):
                taken.append(waiter)
        return taken

    def _ready_count(self, queue: QueueState, partition: int | None = None) -> int:
        return ready_count(queue, self._shell.clock, partition)

    def _take_group(self, state: QueueState, calls: list[Call]) -> None:
        while calls:
            answers = self._take(state, [call.columns[0] for call in calls])
            left: list[Call] = []
            for call, own in zip(calls, answers, strict=True):
                if own[0].packed:
                    self._shell.answer(call, own)
                else:
                    left.append(call)
            if len(left) == len(calls) or not self._ready_count(
                state, calls[0].columns[0].partition
            ):
                break
            # The answers together were as long as one may be; the others have their turn now.
            calls = left
        for call in left:
            call.future.set_result([NOTHING_POLLED] * len(call.columns[0].counts))

    def _take(self, queue: QueueState, asked: Sequence[Asked]) -> list[list[Polled]]:
        """Lease items to calls with the same terms; the answers of each."""
        shell = self._shell
        lease = partial(
            poll,
            lease_ms=asked[0].lease_ms,
            answer_bytes_max=shell.limits.answer_bytes_max,
            partition=asked[0].partition,
            holder=(
                self._bound.held_together(queue, asked[0].connection) if len(asked) == 1 else None
            ),
        )
        age_ms = self.waits.age_ms(queue, shell.clock)
        counts = [count for each in asked for count in each.counts]
        for _ in range(1 + CAP_PASSES_MAX):
            before = _out_of_the_way(queue)
            found = shell.run(queue, lease, counts)
            if found[0].packed or _out_of_the_way(queue) <= before:
                break
            # Items that must wait for their cap, or have expired, are out of the way now.
        given = iter(found)
        answers = [list(islice(given, len(each.counts))) for each in asked]
        if found[0].packed:
            if age_ms is not None:
                self.waits.polled(queue, age_ms)
            for each, own in zip(asked, answers, strict=True):
                self._count_given(queue, each, [polled for polled in own if polled.packed])
        if found[0].packed or queue.caps is not None:
            # A lease will expire, or who was parked is let go at a time.
            shell.wake_sweeper_for(shell.engine.agenda.next_ms())
        return answers

    def _count_given(self, queue: QueueState, asked: Asked, given: list[Polled]) -> None:
        if asked.memory is not None:
            asked.memory.take(sum(len(each.contents) for polled in given for each in polled.packed))
        _log.debug("polled", queue=queue.name, leases=[(a.lease_id, a.ids) for a in given])
        leases = [polled.lease_id for polled in given]
        self._holders.remember(leases, asked.holder)
        if given and asked.connection is not None:
            self._bound.add(asked.connection, queue, leases)

    async def _wait_for_items(
        self, queue: QueueHandle, asked: Asked, wait_ms: int, poll_call: PollCall
    ) -> Polled:
        shell, queue_id = self._shell, queue.state.queue_id
        queue.check_alive()  # other calls may have come between the first look and this turn
        shell.check_may_wait(queue.session)
        waiter = poll_call.waiter = Waiter(shell.loop.create_future(), asked)
        if poll_call.is_withdrawn:
            waiter.answer(NOTHING_POLLED)
        self._waiters.append(queue_id, waiter)
        if self._ready_count(queue.state, asked.partition):
            self.serve(queue.state)
        timer = shell.loop.call_later(wait_ms / 1000, waiter.answer, NOTHING_POLLED)
        try:
            polled: Polled = await shell.wait(queue.session, waiter.future)
        except BaseException:
            # The caller hung up, perhaps in the very turn in which it was served.
            future = waiter.future
            if future.done() and not future.cancelled() and future.exception() is None:
                self._take_back(queue.state, [future.result()])
            raise
        finally:
            timer.cancel()
            self._waiters.discard(queue_id, waiter)
        if polled.packed:
            call = Call((asked,), 0, answer=[polled])
            await self._handed_over(queue.state, waiter.durable, call)
        return polled

    async def _handed_over(self, queue: QueueState, future: Future, call: Call) -> Any:
        """Wait for the future; if the caller hangs up meanwhile, take back what the call got."""
        try:
            return await future
        except Internal:
            raise  # the sync failed: nothing is written any more
        except BaseException:
            if call.answer is not None:
                self._take_back(queue, call.answer)
            raise

    def _take_back(self, queue: QueueState, given: list[Polled]) -> None:
        if queue.is_deleted:
            return
        for polled in given:
            if polled.packed:
                _log.debug("taken_back", queue=queue.name, lease=polled.lease_id)
                # If the disk is full, the lease ends when it expires.
                with contextlib.suppress(Unavailable):
                    self._shell.run(queue, release_lease, polled.lease_id)
        self.serve(queue)

    # --- polls that wait --------------------------------------------------------------------------

    def serve(self, queue: QueueState) -> None:
        """Give ready items to the polls that wait, in the order in which they came.

        One whose connection holds too many items for the quarantined item that comes next goes on
        waiting, and those behind it are served. So does one for another partition than what is
        ready is in.
        """
        self._serve_queue(queue)
        if self._passed_over:
            # What a connection holds in one queue may keep its polls in others from being served.
            for other in [each for each in self._passed_over if each is not queue]:
                self._serve_queue(other)

    def _serve_queue(self, queue: QueueState) -> None:
        if not self._waiters.count(queue.queue_id) or queue.is_paused(self._shell.clock.now_ms()):
            self._passed_over.pop(queue, None)
            return
        # A poll that is served may take away what kept others from theirs: then look at them again.
        while self._serve_in_order(queue):
            pass

    def _serve_in_order(self, queue: QueueState) -> bool:
        """Look at each waiting poll once; whether one was passed over, and one behind it served."""
        waiters, queue_id = self._waiters, queue.queue_id
        passed_over: list[Waiter] = []
        refused: set[object] = set()
        """Connections and partitions for which there is nothing."""
        is_to_look_again = is_held_back = False
        while self._ready_count(queue) and (waiter := waiters.first(queue_id)) is not None:
            waiters.discard(queue_id, waiter)
            if not _may_answer(waiter.future, waiter.asked):
                continue
            asked = waiter.asked
            key = (asked.connection, asked.partition)
            if key in refused or not self._ready_count(queue, asked.partition):
                passed_over.append(waiter)
                continue
            group = [waiter, *self._take_alike(queue, asked)]
            try:
                answers = self._take(queue, [each.asked for each in group])
            except Unavailable as error:
                for each in group:
                    fail(each.future, error)
                continue
            left: list[Waiter] = []
            for each, (polled,) in zip(group, answers, strict=True):
                if polled.packed:
                    each.durable = self._shell.durable_future()
                    each.answer(polled)
                else:
                    left.append(each)
            if len(left) < len(group):
                is_to_look_again = bool(passed_over)
                waiters.put_back(queue_id, left)
            else:
                passed_over += group
                refused.add(key)
                # What is ready in other partitions is no reason to look again.
                is_held_back |= asked.partition is None or asked.connection is not None
        waiters.put_back(queue_id, passed_over)
        if is_held_back:
            self._passed_over[queue] = None
        else:
            self._passed_over.pop(queue, None)
        return is_to_look_again and self._ready_count(queue) > 0


def _may_answer(future: Future, asked: Asked) -> bool:
    """Whether the caller is still there, and has read enough of its earlier answers."""
    if future.done():
        return False
    if asked.memory is not None:
        try:
            asked.memory.check()
        except Unavailable as error:
            fail(future, error)
            return False
    return True


def _lease_ms(queue: QueueHandle, lease_ms: int) -> int:
    lease_ms = lease_ms or queue.state.settings.lease_ms
    check_lease_ms(lease_ms)
    return lease_ms


def _out_of_the_way(queue: QueueState) -> int:
    """Grows when a poll parks items, or finds some that have expired."""
    return queue.counters.parked + queue.counters.died_total


def ready_count(queue: QueueState, clock: Clock, partition: int | None = None) -> int:
    """How many items a poll could lease, as far as the queue's caps allow; of a shared group also
    the messages nobody has had, of one partition or of all. Those that came back are counted
    whatever their partition is."""
    undelivered = queue.undelivered
    if undelivered is not None:
        return queue.counters.ready + undelivered.count(partition)
    return queue.counters.ready if queue.caps is None else queue.leasable(clock.now_ms())
