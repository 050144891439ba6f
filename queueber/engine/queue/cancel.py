"""Cancel: an item goes, wherever it is. In its batch it counts as dead.

The holder of a leased item learns of it when its outcome is refused.
"""

from collections.abc import Sequence

from queueber.db.families import Family
from queueber.engine.queue.delayed import take_delayed
from queueber.engine.queue.finish import finish
from queueber.engine.queue.places import find_places
from queueber.engine.queue.queue_state import QueueTx
from queueber.engine.records.batches import Side


def cancel(tx: QueueTx, ids: Sequence[bytes]) -> list[bool]:
    """For each id, whether there was such an item, and it is now gone."""
    queue = tx.queue
    letters = queue.dead_letters.get(list(dict.fromkeys(ids)))
    dead = {item_id for item_id, _ in letters}
    alive = [item_id for item_id in dict.fromkeys(ids) if item_id not in dead]
    gone: list[tuple[bytes, bytes]] = []
    others: list[bytes] = []
    for item_id, mark in zip(alive, take_waiting(tx, alive), strict=True):
        if mark is not None:
            gone.append((item_id, mark))
        else:
            others.append(item_id)
    gone += queue.leases.take_from_any(tx, queue.leases.find(others))
    if letters:
        queue.dead_letters.drop(tx, letters)
        finish(tx, letters, None)
    if gone:
        finish(tx, gone, Side.DEAD)
    cancelled = dead | {item_id for item_id, _ in gone}
    tx.counters.cancelled_total += len(cancelled)
    return [item_id in cancelled for item_id in ids]


def take_waiting(tx: QueueTx, ids: Sequence[bytes]) -> list[bytes | None]:
    """Take items that are ready or delayed out of their index; for each its mark, if it was."""
    if not ids:
        return []
    dues = find_places(tx, ids)
    delayed = tx.store.get_many(Family.DELAYED, [tx.prefix + due for due in dues])
    marks: list[bytes | None] = []
    for due, mark in zip(dues, delayed, strict=True):
        if mark is not None:
            take_delayed(tx, [(due, mark)])
            marks.append(mark)
        else:
            marks.append(tx.queue.ready.take_if_ready(tx, due))
    return marks
