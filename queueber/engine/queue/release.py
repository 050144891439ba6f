"""Release: the holder gives items back at once. No attempt is charged."""

from collections.abc import Sequence

from queueber.db.families import Family
from queueber.db.records.keys import due_part
from queueber.db.records.leases import decode_lease, split_held
from queueber.engine.kernel.state import Engine, QueueState
from queueber.engine.kernel.transaction import Change
from queueber.engine.queue.leases import take_from_any_lease, take_held


def release(
    engine: Engine,
    queue: QueueState,
    ids: Sequence[bytes],
    leases: Sequence[bytes],
    now_ms: int,
) -> list[bool]:
    """For each id, whether its lease held it and it is now ready; `leases` has one for each."""
    change = Change(engine, queue)
    marks = take_held(engine, queue, change, ids, leases, now_ms)
    taken = [(i, mark) for i, mark in zip(ids, marks, strict=True) if mark is not None]
    if taken:
        _give_back(change, taken, now_ms)
    return [mark is not None for mark in marks]


def release_lease(engine: Engine, queue: QueueState, lease_id: bytes, now_ms: int) -> int:
    """Give back all that a lease holds, as if it had never been given; returns how many."""
    entry = engine.store.get(Family.LEASES, queue.prefix + lease_id)
    if entry is None:
        return 0
    change = Change(engine, queue)
    held = [(item_id, lease_id) for item_id, _ in split_held(decode_lease(entry)[1])]
    taken = take_from_any_lease(engine, queue, change, held)
    _give_back(change, taken, now_ms)
    return len(taken)


def _give_back(change: Change, items: list[tuple[bytes, bytes]], now_ms: int) -> None:
    """Items, given as id and mark, that are out of their leases."""
    change.make_ready(sorted((due_part(now_ms, item_id), mark) for item_id, mark in items))
    change.counters.released_total += len(items)
    change.commit()
