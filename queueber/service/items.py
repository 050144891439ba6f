"""Items: adding them, what becomes of those that are leased, and what operators do with them."""

from collections.abc import Awaitable, Sequence

from queueber.engine.loads.staging import add_rows
from queueber.engine.queue.add import add
from queueber.engine.queue.cancel import cancel, cancel_batch, cancel_key
from queueber.engine.queue.complete import complete, complete_whole
from queueber.engine.queue.fail import fail
from queueber.engine.queue.peek import peek
from queueber.engine.queue.peek_filter import PeekFilter
from queueber.engine.queue.purge import purge
from queueber.engine.queue.queue_state import QueueTx
from queueber.engine.queue.redrive import redrive, redrive_first
from queueber.engine.queue.release import release
from queueber.engine.queue.remove import remove, remove_whole
from queueber.engine.queue.reschedule import reschedule
from queueber.limits import DELAY_MS_MAX, KEY_BYTES_MAX, PEEK_ITEMS_MAX, PURGE_ITEMS_MAX
from queueber.model import Added, FailOutcome, ItemInfo, ItemState, NewItems
from queueber.service.lease_holders import LeaseHolders
from queueber.service.session import QueueHandle
from queueber.service.shared_writes import adds, is_plain_add, lists
from queueber.service.shell import Shell
from queueber.service.validate.arguments import (
    check_counts,
    check_ids,
    check_lease_ms,
    check_many,
    check_text,
    one_for_each,
)
from queueber.service.validate.items import (
    BACKOFF_DELAY_MS,
    check_batch,
    check_cursor,
    check_delays_ms,
    check_errors,
    check_new_items,
    check_results,
)
from queueber.service.validate.settings import check_range

_ADD = adds(add)
_REMOVE = lists("removed", remove)
_REMOVE_WHOLE = lists("removed", remove_whole)
_COMPLETE = lists("completed", complete, brings_results=True)
_COMPLETE_WHOLE = lists("completed", complete_whole, brings_results=True)
_FAIL = lists("failed", fail)
_RELEASE = lists("released", release)


class Items:
    def __init__(self, shell: Shell, lease_holders: LeaseHolders) -> None:
        self._shell = shell
        self._extend = lists("extended", lease_holders.extend_leases)

    def add(self, queue: QueueHandle, items: NewItems) -> Awaitable[Added]:
        """Nothing to add is answered with no ids."""
        limits = self._shell.limits
        check_new_items(
            items,
            item_bytes_max=limits.item_bytes_max,
            message_bytes_max=limits.message_bytes_max,
        )
        shell = self._shell
        if not items.contents:
            queue.check_alive()
            return shell.durable(Added([]))
        if items.origin is not None:
            queue.check_alive()
            loads = shell.engine.loads.of(queue.state)
            return shell.write(queue, add_rows, loads, items, event="added")
        if is_plain_add(items):
            return shell.share(queue, _ADD, (items,), len(items.contents))
        return shell.write(queue, add, items, event="added")

    # --- how a lease's items end ------------------------------------------------------------------

    def remove(
        self, queue: QueueHandle, ids: Sequence[bytes], leases: Sequence[bytes]
    ) -> Awaitable[list[bool]]:
        """For each id whether it was removed. One of another length is held by no lease."""
        leases = _check_leases(ids, leases)
        return self._shell.share(queue, _REMOVE, (ids, leases), len(ids))

    def remove_whole(
        self, queue: QueueHandle, leases: Sequence[bytes], counts: Sequence[int]
    ) -> Awaitable[list[bool]]:
        """All items that each lease was given with, if it still holds them; for each, whether it
        did."""
        _check_whole(leases, counts)
        return self._shell.share(queue, _REMOVE_WHOLE, (leases, counts), len(leases))

    def complete(
        self,
        queue: QueueHandle,
        ids: Sequence[bytes],
        leases: Sequence[bytes],
        results: Sequence[bytes],
    ) -> Awaitable[list[bool]]:
        leases = _check_outcome(ids, leases)
        check_results(results, len(ids), self._shell.limits.item_bytes_max)
        return self._shell.share(queue, _COMPLETE, (ids, leases, results), len(ids))

    def complete_whole(
        self,
        queue: QueueHandle,
        leases: Sequence[bytes],
        counts: Sequence[int],
        results: Sequence[bytes],
    ) -> Awaitable[list[bool]]:
        """As `remove_whole`; the results are those of all items in the order of the poll."""
        _check_whole(leases, counts)
        check_results(results, sum(counts), self._shell.limits.item_bytes_max)
        columns = leases, counts, results
        return self._shell.share(queue, _COMPLETE_WHOLE, columns, len(leases))

    def fail(
        self,
        queue: QueueHandle,
        ids: Sequence[bytes],
        leases: Sequence[bytes],
        errors: Sequence[str],
        delays_ms: Sequence[int],
    ) -> Awaitable[list[FailOutcome]]:
        """A delay of -1, or none at all, is the queue's backoff."""
        leases = _check_outcome(ids, leases)
        errors = one_for_each("errors", errors, len(ids))
        check_errors(errors)
        delays_ms = one_for_each("delaysMs", delays_ms or [BACKOFF_DELAY_MS], len(ids))
        check_delays_ms(delays_ms)
        chosen = [None if delay_ms == BACKOFF_DELAY_MS else delay_ms for delay_ms in delays_ms]
        return self._shell.share(queue, _FAIL, (ids, leases, errors, chosen), len(ids))

    def release(
        self, queue: QueueHandle, ids: Sequence[bytes], leases: Sequence[bytes]
    ) -> Awaitable[list[bool]]:
        leases = _check_outcome(ids, leases)
        return self._shell.share(queue, _RELEASE, (ids, leases), len(ids))

    def extend(
        self, queue: QueueHandle, leases: Sequence[bytes], leases_ms: Sequence[int]
    ) -> Awaitable[list[bool]]:
        check_many("leases", len(leases))
        check_ids("leases", leases)
        leases_ms = one_for_each("leaseValiditiesMs", leases_ms, len(leases))
        for lease_ms in leases_ms:
            check_lease_ms(lease_ms)
        columns = leases, leases_ms, [queue.session.holder] * len(leases)
        return self._shell.share(queue, self._extend, columns, len(leases))

    # --- what operators do ------------------------------------------------------------------------

    def peek(
        self, queue: QueueHandle, state: ItemState, after: bytes, limit: int, where: str = ""
    ) -> tuple[list[ItemInfo], bytes]:
        """A page of items, and where the next one begins; empty when there is none. With a filter
        only those that match, and perhaps none though there is a next page."""
        queue.check_alive()
        check_cursor("after", after)
        limit = min(limit, PEEK_ITEMS_MAX) or PEEK_ITEMS_MAX
        shell = self._shell
        bytes_max, store = shell.limits.answer_bytes_max, shell.engine.store
        chosen = PeekFilter(where) if where else None
        return peek(store, queue.state, state, after, limit, bytes_max, chosen)

    def cancel(self, queue: QueueHandle, ids: Sequence[bytes]) -> Awaitable[list[bool]]:
        check_many("ids", len(ids))
        check_ids("ids", ids)
        return self._shell.write(
            queue, cancel, ids, event="cancelled", facts=lambda done: {"items": sum(done)}
        )

    def cancel_key(self, queue: QueueHandle, key: str) -> Awaitable[bool]:
        """The item that the queue remembers the key of; whether it was there."""
        check_text("key", key, KEY_BYTES_MAX)
        return self._shell.write(
            queue, cancel_key, key, event="cancelled", facts=lambda done: {"items": int(done)}
        )

    def cancel_batch(
        self, queue: QueueHandle, batch: str, state: ItemState, after: bytes, limit: int
    ) -> Awaitable[tuple[int, bytes]]:
        """A slice of the items of a state: those of the batch go. How many these were, and where
        the next slice begins."""
        check_batch(batch)
        check_cursor("after", after)
        return self._shell.write(
            queue,
            cancel_batch,
            batch,
            state,
            after,
            min(limit, PURGE_ITEMS_MAX) or PURGE_ITEMS_MAX,
            event="cancelled",
            facts=lambda done: {"items": done[0], "batch": batch},
        )

    def reschedule(
        self, queue: QueueHandle, ids: Sequence[bytes], delay_ms: int
    ) -> Awaitable[list[bool]]:
        """For each id whether the item, ready or delayed, becomes ready after that delay."""
        check_many("ids", len(ids))
        check_ids("ids", ids)
        check_range("delayMs", delay_ms, 0, DELAY_MS_MAX)
        return self._shell.write(
            queue,
            reschedule,
            ids,
            delay_ms,
            event="rescheduled",
            facts=lambda done: {"items": sum(done), "delay_ms": delay_ms},
        )

    def purge(
        self, queue: QueueHandle, state: ItemState, limit: int
    ) -> Awaitable[tuple[int, bool]]:
        """A slice of the items of a state; how many went, and whether there are more."""
        limit = min(limit, PURGE_ITEMS_MAX) or PURGE_ITEMS_MAX
        return self._shell.write(
            queue,
            purge,
            state,
            limit,
            event="purged",
            facts=lambda done: {"state": state.value, "items": done[0]},
        )

    def redrive(
        self, queue: QueueHandle, ids: Sequence[bytes], limit: int
    ) -> Awaitable[tuple[int, bool]]:
        """Dead letters by id, or a slice of all; how many are ready, and whether there are more."""
        if ids:
            check_many("ids", len(ids))
            check_ids("ids", ids)
        else:
            limit = min(limit, PURGE_ITEMS_MAX) or PURGE_ITEMS_MAX
        return self._shell.write(
            queue,
            _redrive,
            ids,
            limit,
            event="redriven",
            facts=lambda done: {"items": done[0]},
        )


def _redrive(tx: QueueTx, ids: Sequence[bytes], limit: int) -> tuple[int, bool]:
    return (redrive(tx, ids), False) if ids else redrive_first(tx, limit)


def _check_whole(leases: Sequence[bytes], counts: Sequence[int]) -> None:
    check_many("leases", len(leases))
    check_ids("leases", leases)
    check_counts(counts, len(leases))


def _check_outcome(ids: Sequence[bytes], leases: Sequence[bytes]) -> Sequence[bytes]:
    """The leases, one for each id."""
    check_ids("ids", ids)
    return _check_leases(ids, leases)


def _check_leases(ids: Sequence[bytes], leases: Sequence[bytes]) -> Sequence[bytes]:
    check_many("ids", len(ids))
    check_ids("leases", leases)
    return one_for_each("leases", leases, len(ids))
