"""Polls: items for those who ask, at once or when there are some, first come first served."""

import contextlib
from collections.abc import Coroutine, Hashable, Sequence
from typing import Any

import structlog

from queueber.engine.kernel.state import QueueState
from queueber.engine.queue.expire import expire_some
from queueber.engine.queue.poll import poll
from queueber.engine.queue.release import release_lease
from queueber.engine.queue.selection import Company, company_of
from queueber.engine.queue.sweep import sweep_queue
from queueber.errors import Internal, Unavailable
from queueber.limits import STORE_RETRY_MS, SWEEP_SLICE_ITEMS
from queueber.model import NOTHING_POLLED, Polled, Sweep
from queueber.service.core import Ending, ServiceCore
from queueber.service.outbox import Claim
from queueber.service.validate.arguments import check_count, check_lease_ms, check_many
from queueber.service.waiters import Asked, PollCall, Waiter

_log = structlog.get_logger("queueber.service")


class Polls(ServiceCore):
    def poll(
        self,
        queue: QueueState,
        count: int,
        *,
        lease_ms: int,
        wait_ms: int,
        connection: object | None = None,
        name: Hashable | None = None,
        claim: Claim | None = None,
    ) -> Coroutine[Any, Any, Polled]:
        """Lease up to `count` items; with none ready, wait for them up to `wait_ms`.

        A `lease_ms` of 0 is the queue's default. With a `connection`, the lease ends when that
        does. With a `name`, the poll can be withdrawn while it waits. What it takes is put to the
        `claim`. Cancelling the awaitable gives back what it had been given, unanswered.
        """
        self._check_alive(queue)
        count = count or 1
        check_count(count, self.limits.poll_items_max)
        asked = Asked([count], self._lease_ms(queue, lease_ms), connection, claim)
        poll_call = PollCall()
        if name is not None:
            self._poll_calls[name] = poll_call
        return self._poll(queue, asked, min(wait_ms, self.limits.poll_wait_ms_max), poll_call)

    def withdraw_poll(self, name: Hashable) -> None:
        """Have a poll that still waits answered with nothing."""
        poll_call = self._poll_calls.get(name)
        if poll_call is not None:
            poll_call.withdraw()

    def poll_many(
        self,
        queue: QueueState,
        counts: Sequence[int],
        *,
        lease_ms: int,
        connection: object | None = None,
        claim: Claim | None = None,
    ) -> Coroutine[Any, Any, list[Polled]]:
        """Several polls, each under a lease of its own. Never waits."""
        self._check_alive(queue)
        check_many("counts", len(counts))
        counts = [count or 1 for count in counts]
        check_count(sum(counts), self.limits.poll_items_max)
        asked = Asked(counts, self._lease_ms(queue, lease_ms), connection, claim)
        return self._poll_many(queue, asked)

    def connection_ended(self, connection: object) -> None:
        """Its holder is gone: leases bound to it expire now, as one company.

        Call it once the calls of the connection are over, so that an unanswered poll of it is
        released and not expired.
        """
        of_queues = self._bound.take(connection)
        company = self._company_of(of_queues).items
        for queue, leases in of_queues:
            _log.debug("connection_lost", queue=queue.name, leases=len(leases))
            self._endings.append(Ending(queue, leases, company))
        for _ in of_queues:
            self._end_some()

    def _end_some(self) -> None:
        """A slice of what a dead connection held in one queue; the sweeper does the rest.

        If the disk is full, it is tried again later: who is alone must not be charged meanwhile.
        """
        ending = self._endings.popleft()
        queue, now_ms = ending.queue, self._clock.now_ms()
        if not queue.is_deleted:
            try:
                _, ending.leases = expire_some(
                    self._engine,
                    queue,
                    ending.leases,
                    now_ms,
                    company=ending.company,
                    items_max=SWEEP_SLICE_ITEMS,
                )
            except Unavailable:
                self._endings_retry_at_ms = now_ms + STORE_RETRY_MS
            else:
                self._settle(queue)
            if ending.leases:
                self._endings.append(ending)
        if self._endings:
            self._sweeper_wakes_at_ms = 0
            self._wake_sweeper()

    def _lease_ms(self, queue: QueueState, lease_ms: int) -> int:
        lease_ms = lease_ms or queue.settings.lease_ms
        check_lease_ms(lease_ms)
        return lease_ms

    async def _poll(
        self, queue: QueueState, asked: Asked, wait_ms: int, poll_call: PollCall
    ) -> Polled:
        if poll_call.is_withdrawn:
            return NOTHING_POLLED
        polled = self._take_now(queue, asked)[0]
        if not polled.ids and wait_ms > 0 and not self.gate.is_closed:
            polled = await self._wait_for_items(queue, asked, wait_ms, poll_call)
        if polled.ids:
            await self._hand_over(queue, [polled])
        return polled

    async def _poll_many(self, queue: QueueState, asked: Asked) -> list[Polled]:
        answers = self._take_now(queue, asked)
        given = [polled for polled in answers if polled.ids]
        if given:
            await self._hand_over(queue, given)
        return answers

    def _swept(self, swept: Sweep) -> None:
        if swept.expired or swept.promoted:
            _log.debug(
                "swept", queue=swept.queue_name, expired=swept.expired, promoted=swept.promoted
            )
        # Whatever this slice did: one before it may have been cut short by a full disk.
        self._settle(self._engine.queue(swept.queue_name))

    def _take_now(self, queue: QueueState, asked: Asked) -> list[Polled]:
        self._check_alive(queue)  # other calls may have come between the check and this turn
        # What became due since the sweeper last looked is to be had now, whoever comes first.
        now_ms = self._clock.now_ms()
        if self._engine.agenda.due_ms(queue.queue_id) <= now_ms:
            self._swept(sweep_queue(self._engine, queue, now_ms))
        answers = self._take(queue, asked)
        if answers[0].ids:
            # A suspect that nobody who waits could have may be out of the way now.
            self._serve_waiters(queue)
        return answers

    def _take(self, queue: QueueState, asked: Asked) -> list[Polled]:
        if asked.claim is not None:
            asked.claim.check()
        answers = poll(
            self._engine,
            queue,
            asked.counts,
            lease_ms=asked.lease_ms,
            answer_bytes_max=self.limits.answer_bytes_max,
            now_ms=self._clock.now_ms(),
            company=self._company(queue, asked.connection),
        )
        if answers[0].ids:
            if asked.claim is not None:
                asked.claim.take(sum(len(each) for answer in answers for each in answer.contents))
            _log.debug("polled", queue=queue.name, leases=[(a.lease_id, a.ids) for a in answers])
            if asked.connection is not None:
                self._bound.add(
                    asked.connection, queue, [answer.lease_id for answer in answers if answer.ids]
                )
            self._tell_sweeper()
        return answers

    def _company(self, queue: QueueState, connection: object | None) -> Company | None:
        """What a connection holds, if that matters: only suspects ask who is with them."""
        if connection is None:
            return None
        queues = {queue, *self._bound.queues(connection)}
        if not any(each.counters.suspects for each in queues):
            return None
        return self._company_of(self._bound.of(connection))

    def _company_of(self, of_queues: list[tuple[QueueState, list[bytes]]]) -> Company:
        company = Company()
        for queue, leases in of_queues:
            company.merge(company_of(self._engine, queue, leases))
        return company

    async def _wait_for_items(
        self, queue: QueueState, asked: Asked, wait_ms: int, poll_call: PollCall
    ) -> Polled:
        self._check_room_to_wait()
        waiter = poll_call.waiter = Waiter(self._loop.create_future(), asked)
        self._waiters.append(queue.queue_id, waiter)
        timer = self._loop.call_later(wait_ms / 1000, waiter.answer, NOTHING_POLLED)
        try:
            polled: Polled = await self._await_aside(waiter.future)
        except BaseException:
            # The caller hung up, perhaps in the very turn in which it was served.
            future = waiter.future
            if future.done() and not future.cancelled() and future.exception() is None:
                self._take_back(queue, [future.result()])
            raise
        finally:
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
                    release_lease(self._engine, queue, polled.lease_id, self._clock.now_ms())
        self._serve_waiters(queue)

    def _settle(self, queue: QueueState) -> None:
        """After a change: let those have their due who wait for what it may have brought."""
        self._serve_waiters(queue)
        self._tell_of_batches(queue)
        self._tell_sweeper()
        self._tell_reclaimer()

    def _serve_waiters(self, queue: QueueState) -> None:
        """Give ready items to the polls that wait, in the order in which they came.

        One that holds too many already for the suspect whose turn it is goes on waiting, and those
        behind it have theirs.
        """
        if queue.is_paused(self._clock.now_ms()):
            return
        # Whoever is served may take away what kept others from theirs: then look at them again.
        while self._serve_in_order(queue):
            pass

    def _serve_in_order(self, queue: QueueState) -> bool:
        """Look at each waiting poll once; whether one was passed over, and one behind it served."""
        waiters, queue_id = self._waiters, queue.queue_id
        passed_over: list[Waiter] = []
        connections: set[object] = set()
        is_to_look_again = False
        while queue.counters.ready and (waiter := waiters.first(queue_id)) is not None:
            waiters.discard(queue_id, waiter)
            if waiter.future.done():
                continue
            if waiter.asked.connection in connections:
                passed_over.append(waiter)
                continue
            try:
                polled = self._take(queue, waiter.asked)[0]
            except Unavailable as error:
                waiter.fail(error)
                continue
            if polled.ids:
                waiter.answer(polled)
                is_to_look_again = bool(passed_over)
            else:
                passed_over.append(waiter)
                connections.add(waiter.asked.connection)
        waiters.put_back(queue_id, passed_over)
        return is_to_look_again and queue.counters.ready > 0
