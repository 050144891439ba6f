"""Cancel: delete an item, whatever state it is in. Its batch counts it as dead.

The holder of a leased item learns of it when the server refuses the outcome of its work.
"""

from collections.abc import Sequence

from queueber.db.families import Family
from queueber.db.records.keys import Mark
from queueber.engine.queue.leases import Marks, held_items
from queueber.engine.queue.places import find_places, take_delayed
from queueber.engine.queue.queue_state import QueueTx
from queueber.engine.queue.remove import finish
from queueber.engine.records.batches import Side


def cancel(tx: QueueTx, ids: Sequence[bytes]) -> list[bool]:
    """For each id, whether there was such an item, and it is now gone."""
    queue = tx.queue
    letters = queue.dead_letters.get(list(dict.fromkeys(ids)))
    dead = {item_id for item_id, _ in letters}
    alive = [item_id for item_id in dict.fromkeys(ids) if item_id not in dead]
    marks = take_waiting(tx, alive)
    gone = held_items(alive, marks)
    others = [item_id for item_id, mark in zip(alive, marks, strict=True) if mark is None]
    gone += queue.leases.take_from_any(tx, queue.leases.find(others))
    if letters:
        queue.dead_letters.drop(tx, letters)
        finish(tx, letters, None)
    if gone:
        finish(tx, gone, Side.DEAD)
    cancelled = dead | {item_id for item_id, _ in gone}
    tx.counters.cancelled_total += len(cancelled)
    return [item_id in cancelled for item_id in ids]


def take_waiting(tx: QueueTx, ids: Sequence[bytes]) -> Marks:
    """Take ready and delayed items out of their index; for each its mark, None for others."""
    if not ids:
        return []
    dues = find_places(tx, ids)
    delayed = tx.store.get_many(Family.DELAYED, [tx.prefix + due for due in dues])
    marks: Marks = []
    for due, found in zip(dues, delayed, strict=True):
        if found is not None:
            mark = Mark(found)
            take_delayed(tx, [(due, mark)])
            marks.append(mark)
        else:
            marks.append(tx.queue.ready.take_if_ready(tx, due))
    return marks
