"""Reading: receipts of batches, and the results of a queue."""

from collections.abc import Awaitable

from queueber.engine.kernel.state import QueueState
from queueber.engine.log.log import acknowledge, drop_reader, reader_offset
from queueber.engine.queue.results import results_of, results_stats
from queueber.engine.queue.view import live_view
from queueber.engine.records.batches import receipt
from queueber.limits import READ_ITEMS_MAX
from queueber.model import ALL_COLUMNS, Column, LogStats, Receipt, Results
from queueber.service.core import ServiceCore
from queueber.service.outbox import Claim
from queueber.service.validate.items import check_batch, check_reader


class Reading(ServiceCore):
    def receipt(self, queue: QueueState, batch: str) -> Awaitable[Receipt]:
        self._check_alive(queue)
        check_batch(batch)
        return self._durable(receipt(self._engine, queue, batch))

    def wait_batch(self, queue: QueueState, batch: str, wait_ms: int) -> Awaitable[Receipt]:
        """The receipt once it is complete, or as it is when the time is up."""
        self._check_alive(queue)
        check_batch(batch)

        def look() -> tuple[Receipt, bool]:
            self._check_alive(queue)
            found = receipt(self._engine, queue, batch)
            return found, found.complete

        return self._wait_for((queue.queue_id, batch), look, wait_ms)

    def read_results(
        self,
        queue: QueueState,
        *,
        reader: str,
        offset: int,
        limit: int,
        wait_ms: int,
        before: int = 0,
        batch: str = "",
        without: frozenset[Column] = ALL_COLUMNS,
        claim: Claim | None = None,
    ) -> Awaitable[Results]:
        """Results from where the reader has acknowledged, or without a reader from `offset`.

        It waits for results that are not there yet; when those that are there were only passed
        over, for another batch, it answers at once how far it came.
        """
        self._check_alive(queue)
        if reader:
            check_reader(reader)
            offset = reader_offset(queue.results, reader)
        if batch:
            check_batch(batch)
        limit = min(limit, READ_ITEMS_MAX) or READ_ITEMS_MAX
        room = self.limits.answer_bytes_max
        at, missed = offset, 0

        def look() -> tuple[Results, bool]:
            nonlocal at, missed
            self._check_alive(queue)
            if claim is not None:
                claim.check()
            view = live_view(self._engine, queue)
            found = results_of(view, at, limit, room, before=before, batch=batch, without=without)
            # What was passed over need not be looked at again when the next result comes.
            at, missed = found.next_offset, missed + found.missed
            if claim is not None:
                claim.take(sum(len(each.result) for each in found.results))
            is_at_end = at == queue.results.head.next_offset and not (before and at >= before)
            answer = Results(found.results, at, missed)
            return answer, bool(found.results) or not is_at_end

        return self._wait_for((queue.queue_id, None), look, wait_ms)

    def ack_results(self, queue: QueueState, reader: str, offset: int) -> Awaitable[None]:
        self._check_alive(queue)
        check_reader(reader)
        acknowledge(self._engine.store, queue.results, reader, offset)
        self._schedule_trim(queue)
        return self._durable(None)

    def drop_reader(self, queue: QueueState, reader: str) -> Awaitable[bool]:
        self._check_alive(queue)
        check_reader(reader)
        dropped = drop_reader(self._engine.store, queue.results, reader)
        self._schedule_trim(queue)
        return self._durable(dropped)

    def log_stats(self, queue: QueueState) -> LogStats:
        self._check_alive(queue)
        return results_stats(queue)

    def _schedule_trim(self, queue: QueueState) -> None:
        due_ms = queue.results_due_ms(self._clock.now_ms())
        self._engine.agenda.schedule(queue.queue_id, due_ms)
        self._tell_sweeper()
