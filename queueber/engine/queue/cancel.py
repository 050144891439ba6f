"""Cancel: delete an item, whatever state it is in. Its batch counts it as dead.

The holder of a leased item learns of it when the server refuses the outcome of its work.
"""

from collections.abc import Sequence
from functools import partial

from queueber.db.records.cutting import by_entry, pick
from queueber.db.records.runs import Run, at_time_of
from queueber.engine.caps.key_changes import leave_ready
from queueber.engine.queue.changes import Change, Moved, gone
from queueber.engine.queue.find import Place, find_waiting, id_of_key
from queueber.engine.queue.lifecycle import State
from queueber.engine.queue.peek import ids_of_batch
from queueber.engine.queue.places import put_delayed, take_delayed
from queueber.engine.queue.queue_state import QueueTx, live_view
from queueber.engine.queue.remove import finish
from queueber.engine.records.batches import Side
from queueber.ids import ItemId
from queueber.model import ItemState

Places = dict[Place, list[int]]
"""Entries of ready or delayed items, each with the positions of some of them in its run."""


def cancel(tx: QueueTx, ids: Sequence[bytes]) -> list[bool]:
    """For each id, whether there was such an item, and it is now gone."""
    queue = tx.queue
    letters = queue.dead_letters.take(tx, ids)
    ready, delayed = take_waiting(tx, ids)
    cancelled = {item_id for run in (*letters, *ready, *delayed) for item_id in run.ids}
    others = [item_id for item_id in dict.fromkeys(ids) if item_id not in cancelled]
    leased = queue.leases.take_from_any(tx, queue.leases.find(others))
    cancelled.update([item_id for run in leased for item_id in run.ids])
    if queue.changes is not None:
        moves = [
            *gone(Change.CANCELLED, letters, State.DEAD),
            *gone(Change.CANCELLED, ready, State.READY),
            *gone(Change.CANCELLED, delayed, State.DELAYED),
            *gone(Change.CANCELLED, leased, State.LEASED),
        ]
        queue.changes.moved(tx, sorted(moves, key=_last_id))
    if letters:
        finish(tx, letters, None)
    if living := ready + delayed + leased:
        finish(tx, living, Side.DEAD)
    tx.counters.cancelled_total += len(cancelled)
    return [item_id in cancelled for item_id in ids]


def cancel_key(tx: QueueTx, key: str) -> bool:
    """Whether the queue remembers an item with the key, and it was there; it is now gone."""
    item_id = id_of_key(tx.store, tx.queue, key, tx.now_ms)
    return bool(item_id) and cancel(tx, [item_id]) == [True]


def cancel_batch(
    tx: QueueTx, batch: str, state: ItemState, after: bytes, limit: int
) -> tuple[int, bytes]:
    """Cancel those of the next `limit` items of a state that belong to a batch.

    Returns how many these were, and where the next slice begins: empty when there is none.
    """
    view = live_view(tx.store, tx.queue)
    number = view.batches.number(batch)
    if number is None:
        return 0, b""
    ids, next_after = ids_of_batch(view, state, number, after, limit)
    if ids:
        cancel(tx, ids)
    return len(ids), next_after


def take_waiting(tx: QueueTx, ids: Sequence[bytes]) -> tuple[list[Run], list[Run]]:
    """Take those of the items that are ready, and those that are delayed, out of their index."""
    return take_places(tx, find_places(tx, ids))


def find_places(tx: QueueTx, ids: Sequence[bytes]) -> Places:
    """Where those of the items are that are ready or delayed."""
    return by_entry(ids, partial(_find, tx), _run)


def take_places(tx: QueueTx, places: Places) -> tuple[list[Run], list[Run]]:
    """As `take_waiting`, of items that are found already."""
    ready: list[Run] = []
    delayed: list[Run] = []
    blocks = tx.queue.blocks.reader()
    for (level, entry), positions in places.items():
        due, run = entry
        picked, left = pick(run, positions, blocks.sizes(run))
        if level is not None:
            ready += picked
            tx.queue.ready.take_some(tx, level, entry, left)
            leave_ready(tx, due, picked)
            continue
        delayed += picked
        take_delayed(tx, [entry])
        if left:
            put_delayed(tx, [at_time_of(due, each) for each in left])
    return ready, delayed


def _last_id(move: Moved) -> ItemId:
    return move.run.last


def _run(place: Place) -> Run:
    return place[1][1]


def _find(tx: QueueTx, item_id: bytes) -> Place | None:
    return find_waiting(tx.store, tx.queue, tx.counters, item_id)
