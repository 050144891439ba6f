"""Remove: the work is done, the item goes."""

from collections.abc import Sequence

from queueber.engine.batches import Side
from queueber.engine.change import Change
from queueber.engine.finish import finish
from queueber.engine.leases import take_held
from queueber.engine.state import Engine, QueueState


def remove(
    engine: Engine,
    queue: QueueState,
    ids: Sequence[bytes],
    leases: Sequence[bytes],
    now_ms: int,
) -> list[bool]:
    """For each id, whether its lease held it and it is now gone; `leases` has one for each."""
    change = Change(engine, queue)
    marks = take_held(engine, queue, change, ids, leases, now_ms)
    gone = [(i, mark) for i, mark in zip(ids, marks, strict=True) if mark is not None]
    if gone:
        finish(queue, change, gone, Side.DONE, now_ms)
        change.counters.removed_total += len(gone)
        change.commit()
    return [mark is not None for mark in marks]
