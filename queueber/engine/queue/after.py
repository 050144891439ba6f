"""What new items wait for: others of their queue, and a batch.

A new item waits for those that are there and for a batch that is not complete. An item that the
queue no longer holds counts as done, whatever became of it: the queue does not remember it.
"""

from collections.abc import Sequence
from typing import NamedTuple

from queueber.db.records.waits import batch_what, item_what
from queueber.engine.queue.find import find_waiting
from queueber.engine.queue.queue_state import QueueTx
from queueber.engine.records.waits import count_waiters, dead_already, put_waits
from queueber.errors import FailedPrecondition, InvalidArgument, NotFound, ResourceExhausted
from queueber.ids import ItemId
from queueber.limits import AFTER_TOGETHER_MAX, WAITERS_MAX, WAITING_MAX
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
