"""What new items wait for: others of their queue, and a batch.

A new item waits for those that are there and for a batch that is not complete. An item that the
queue no longer holds counts as done, whatever became of it: the queue does not remember it.

An item waits for earlier ones only, but a batch may get items later: two batches whose items wait
for each other would wait for ever. So an item is refused that waits for what waits for its batch.
"""

from collections.abc import Sequence
from typing import NamedTuple

from queueber.db.families import Family
from queueber.db.records.keys import AWAITING_MS, PREFIX_BYTES
from queueber.db.records.runs import mark_batch
from queueber.db.records.waits import AFTER_ANY_WAITER, batch_what, item_what, split_waited_for
from queueber.engine.queue.find import find_waiting
from queueber.engine.queue.places import find_entry
from queueber.engine.queue.queue_state import QueueTx
from queueber.engine.records.waits import count_waiters, dead_already, put_waits
from queueber.errors import FailedPrecondition, InvalidArgument, NotFound, ResourceExhausted
from queueber.ids import ItemId
from queueber.limits import (
    AFTER_TOGETHER_MAX,
    CIRCLE_LOOKED_AT_MAX,
    WAITERS_MAX,
    WAITING_MAX,
)
from queueber.model import NewItems


class Awaited(NamedTuple):
    """What the items of a call wait for."""

    whats: Sequence[bytes] = ()
    dead: Sequence[bytes] = ()
    """Those of them that are dead letters by now."""

    def store(self, tx: QueueTx, ids: Sequence[ItemId], delays_ms: Sequence[int]) -> None:
        put_waits(tx, ids, delays_ms or [0] * len(ids), self.whats)
        for item_id in self.dead:
            dead_already(tx, item_id)


NOTHING = Awaited()


def awaited(tx: QueueTx, items: NewItems) -> Awaited:
    """What there is to wait for; nothing if all is done. Raises before anything is written."""
    whats: list[bytes] = []
    dead: list[bytes] = []
    for item_id in dict.fromkeys(items.after):
        if item_id > tx.counters.last_id:
            raise NotFound(
                f"after: queue {tx.queue.name!r} has never had an item {item_id.hex()}; an item "
                "waits for items of its own queue"
            )
        is_dead = tx.queue.dead_letters.has(item_id)
        if is_dead or _is_live(tx, item_id):
            whats.append(item_what(item_id))
        if is_dead:
            dead.append(item_id)
    if items.after_batch:
        whats += _batch(tx, items)
    if whats:
        _check_room(tx, items, whats)
        if items.batch:
            _check_circle(tx, items.batch, set(whats))
    return Awaited(whats, dead)


def _is_live(tx: QueueTx, item_id: bytes) -> bool:
    queue = tx.queue
    place = find_waiting(tx.store, queue, tx.counters, item_id)
    return place is not None or bool(queue.leases.find([item_id]))


def _batch(tx: QueueTx, items: NewItems) -> list[bytes]:
    name, batches = items.after_batch, tx.queue.batches
    if name == items.batch:
        raise InvalidArgument(f"after_batch: {name!r} is the batch of the items themselves")
    receipt = batches.receipt(name)
    if receipt.complete and not receipt.added:
        raise FailedPrecondition(
            f"after_batch: {name!r} of queue {tx.queue.name!r} has no items; add them first"
        )
    return [] if receipt.complete else [batch_what(batches.names.number(name) or 0)]


def _check_room(tx: QueueTx, items: NewItems, whats: Sequence[bytes]) -> None:
    count, queue = len(items.contents), tx.queue
    if count * len(whats) > AFTER_TOGETHER_MAX:
        raise ResourceExhausted(
            f"after: {count} items that wait for {len(whats)} each are too many for one call; the "
            f"limit is {AFTER_TOGETHER_MAX} together, or have them wait for a batch"
        )
    if tx.counters.waiting + count > WAITING_MAX:
        raise ResourceExhausted(
            f"after: {tx.counters.waiting} items of queue {queue.name!r} wait for others; {count} "
            f"more would pass the limit of {WAITING_MAX}"
        )
    for what in whats:
        waiters = count_waiters(tx, what, WAITERS_MAX)
        if waiters + count > WAITERS_MAX:
            raise ResourceExhausted(
                f"after: {waiters} items wait for one and the same; {count} more would pass the "
                f"limit of {WAITERS_MAX}"
            )


def _check_circle(tx: QueueTx, batch: str, wanted: set[bytes]) -> None:
    """Refuse what would wait for itself. Looks at those who wait for the batch, at those who wait
    for them or for their batches, and so on, up to a limit."""
    number = tx.queue.batches.names.number(batch)
    if number is None:
        return
    prefix, budget = tx.prefix, CIRCLE_LOOKED_AT_MAX
    left, seen = [batch_what(number)], {batch_what(number)}
    while left and budget:
        start = prefix + left.pop()
        entries = tx.store.scan(Family.WAITED_FOR, start, start + AFTER_ANY_WAITER, budget)
        budget -= len(entries)
        for key, _ in entries:
            _, waiter = split_waited_for(key[PREFIX_BYTES:])
            entry = find_entry(tx.store, Family.DELAYED, prefix, AWAITING_MS, waiter)
            own = mark_batch(entry[1].mark) if entry is not None else 0
            reached = {item_what(waiter), batch_what(own)} if own else {item_what(waiter)}
            if reached & wanted:
                raise FailedPrecondition(
                    f"after: batch {batch!r} of queue {tx.queue.name!r} would wait for itself: "
                    f"item {waiter.hex()} waits for it, and what is added would wait for that item "
                    "or its batch"
                )
            left += sorted(reached - seen)
            seen |= reached
