"""Cancel: an item goes, wherever it is. In its batch it counts as dead.

The holder of an item in progress learns of it when its outcome is refused.
"""

from collections.abc import Sequence

from queueber.db.families import Family
from queueber.db.records.dead_letters import decode_dead
from queueber.db.records.keys import due_part
from queueber.engine.kernel.state import Engine, QueueState
from queueber.engine.kernel.transaction import Change
from queueber.engine.queue.dead_letters import drop_dead
from queueber.engine.queue.finish import finish
from queueber.engine.queue.holders import find_holders
from queueber.engine.queue.leases import take_from_any_lease
from queueber.engine.queue.places import take_waiting
from queueber.engine.records.batches import Side
from queueber.ids import made_at_ms


def cancel(engine: Engine, queue: QueueState, ids: Sequence[bytes], now_ms: int) -> list[bool]:
    """For each id, whether there was such an item, and it is now gone."""
    distinct = list(dict.fromkeys(ids))
    change = Change(engine, queue)
    keys = [queue.prefix + item_id for item_id in distinct]
    dead = engine.store.get_many(Family.DEAD, keys)
    places = engine.store.get_many(Family.PLACES, keys)
    letters: list[tuple[bytes, bytes]] = []
    waiting: list[tuple[bytes, bytes]] = []
    others: list[bytes] = []
    for item_id, letter, place in zip(distinct, dead, places, strict=True):
        if letter is not None:
            letters.append((item_id, decode_dead(letter)[2]))
            continue
        at_ms = made_at_ms(item_id) if place is None else int.from_bytes(place)
        mark = take_waiting(engine, queue, change, due_part(at_ms, item_id))
        if mark is not None:
            waiting.append((item_id, mark))
        else:
            others.append(item_id)

    held = find_holders(engine, queue, others)
    waiting += take_from_any_lease(engine, queue, change, held)
    if letters:
        drop_dead(queue, change, letters)
        finish(queue, change, letters, None, now_ms)
    if waiting:
        finish(queue, change, waiting, Side.DEAD, now_ms)
    gone = {item_id for item_id, _ in waiting + letters}
    if gone:
        change.counters.cancelled_total += len(gone)
        change.commit()
    return [item_id in gone for item_id in ids]
