"""Remove: the work is done, the item goes."""

from collections.abc import Sequence
from itertools import chain

from queueber.engine.kernel.state import Engine, QueueState
from queueber.engine.kernel.transaction import Change
from queueber.engine.queue.finish import finish
from queueber.engine.queue.leases import take_held, take_whole
from queueber.engine.records.batches import Side


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
    _remove(queue, change, gone, now_ms)
    return [mark is not None for mark in marks]


def remove_whole(
    engine: Engine,
    queue: QueueState,
    leases: Sequence[bytes],
    counts: Sequence[int],
    now_ms: int,
) -> list[bool]:
    """For each lease, whether it held as many items as its count says and they are now gone."""
    change = Change(engine, queue)
    taken = take_whole(engine, queue, change, leases, counts, now_ms)
    _remove(queue, change, list(chain.from_iterable(taken)), now_ms)
    return [bool(items) for items in taken]


def _remove(
    queue: QueueState, change: Change, items: Sequence[tuple[bytes, bytes]], now_ms: int
) -> None:
    """Items, given as id and mark, that are out of their leases."""
    if items:
        finish(queue, change, items, Side.DONE, now_ms)
        change.counters.removed_total += len(items)
        change.commit()
