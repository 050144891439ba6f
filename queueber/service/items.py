"""Items: adding them, and what becomes of those that are leased."""

from collections.abc import Awaitable, Sequence

import structlog

from queueber.engine.kernel.state import QueueState
from queueber.engine.queue.add import add
from queueber.engine.queue.complete import complete
from queueber.engine.queue.extend import extend
from queueber.engine.queue.fail import fail
from queueber.engine.queue.release import release
from queueber.engine.queue.remove import remove, remove_whole
from queueber.model import Added, FailOutcome, NewItems
from queueber.service.polls import Polls
from queueber.service.validate.arguments import (
    check_counts,
    check_ids,
    check_lease_ms,
    check_many,
    one_for_each,
)
from queueber.service.validate.items import (
    BACKOFF_DELAY_MS,
    check_delays_ms,
    check_errors,
    check_new_items,
    check_results,
)

_log = structlog.get_logger("queueber.service")


class Items(Polls):
    def add(self, queue: QueueState, items: NewItems) -> Awaitable[Added]:
        self._check_alive(queue)
        check_new_items(
            items,
            item_bytes_max=self.limits.item_bytes_max,
            message_bytes_max=self.limits.message_bytes_max,
        )
        added = add(self._engine, queue, items, self._clock.now_ms())
        _log.debug("added", queue=queue.name, ids=added.ids)
        self._settle(queue)
        return self._durable(added)

    def remove(
        self, queue: QueueState, ids: Sequence[bytes], leases: Sequence[bytes]
    ) -> Awaitable[list[bool]]:
        leases = self._check_outcome(queue, ids, leases)
        removed = remove(self._engine, queue, ids, leases, self._clock.now_ms())
        _log.debug("removed", queue=queue.name, ids=ids, removed=removed)
        self._settle(queue)
        return self._durable(removed)

    def remove_whole(
        self, queue: QueueState, leases: Sequence[bytes], counts: Sequence[int]
    ) -> Awaitable[list[bool]]:
        """All that each lease was given with, if it still holds that; for each, whether it did."""
        self._check_alive(queue)
        check_many("leases", len(leases))
        check_ids("leases", leases)
        check_counts(counts, len(leases))
        removed = remove_whole(self._engine, queue, leases, counts, self._clock.now_ms())
        _log.debug("removed", queue=queue.name, leases=leases, removed=removed)
        self._settle(queue)
        return self._durable(removed)

    def complete(
        self,
        queue: QueueState,
        ids: Sequence[bytes],
        leases: Sequence[bytes],
        results: Sequence[bytes],
    ) -> Awaitable[list[bool]]:
        leases = self._check_outcome(queue, ids, leases)
        check_results(results, len(ids), self.limits.item_bytes_max)
        completed = complete(self._engine, queue, ids, leases, results, self._clock.now_ms())
        _log.debug("completed", queue=queue.name, ids=ids, completed=completed)
        if any(completed):
            self._signals.fire((queue.queue_id, None))
        self._settle(queue)
        return self._durable(completed)

    def fail(
        self,
        queue: QueueState,
        ids: Sequence[bytes],
        leases: Sequence[bytes],
        errors: Sequence[str],
        delays_ms: Sequence[int],
    ) -> Awaitable[list[FailOutcome]]:
        """A delay of -1, or none at all, is the queue's backoff."""
        leases = self._check_outcome(queue, ids, leases)
        errors = one_for_each("errors", errors, len(ids))
        check_errors(errors)
        delays_ms = one_for_each("delaysMs", delays_ms or [BACKOFF_DELAY_MS], len(ids))
        check_delays_ms(delays_ms)
        chosen = [None if delay_ms == BACKOFF_DELAY_MS else delay_ms for delay_ms in delays_ms]
        outcomes = fail(self._engine, queue, ids, leases, errors, chosen, self._clock.now_ms())
        _log.debug("failed", queue=queue.name, ids=ids, outcomes=outcomes)
        self._settle(queue)
        return self._durable(outcomes)

    def release(
        self, queue: QueueState, ids: Sequence[bytes], leases: Sequence[bytes]
    ) -> Awaitable[list[bool]]:
        leases = self._check_outcome(queue, ids, leases)
        released = release(self._engine, queue, ids, leases, self._clock.now_ms())
        _log.debug("released", queue=queue.name, ids=ids, released=released)
        self._settle(queue)
        return self._durable(released)

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

    def _check_outcome(
        self, queue: QueueState, ids: Sequence[bytes], leases: Sequence[bytes]
    ) -> Sequence[bytes]:
        """The leases, one for each id."""
        self._check_alive(queue)
        check_many("ids", len(ids))
        check_ids("ids", ids)
        check_ids("leases", leases)
        return one_for_each("leases", leases, len(ids))
