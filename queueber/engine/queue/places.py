"""Find an item that is ready or delayed by where it must be."""

from queueber.db.families import Family
from queueber.db.records.keys import level_part
from queueber.engine.kernel.state import Engine, QueueState
from queueber.engine.kernel.transaction import Change
from queueber.limits import LEVELS

_LEVELS = range(LEVELS)


def take_waiting(engine: Engine, queue: QueueState, change: Change, due: bytes) -> bytes | None:
    """Take an item that is ready or delayed out of its index; its mark, if it is there."""
    prefix = queue.prefix
    delayed = engine.store.get(Family.DELAYED, prefix + due)
    if delayed is not None:
        change.drop_delayed([(due, delayed)])
        return delayed
    keys = [prefix + level_part(level) + due for level in _LEVELS]
    for level, ready in zip(
        _LEVELS, engine.store.get_many(Family.VISIBILITY_INDEX, keys), strict=True
    ):
        if ready is not None:
            change.drop_ready(level, [(due, ready)])
            return ready
    return None
