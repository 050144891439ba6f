"""Finish: an item goes for good, and with it all that is kept of it."""

from collections.abc import Sequence

from queueber.db.families import Family
from queueber.db.records.marks import is_plain, mark_attempts, mark_group_max, mark_size
from queueber.engine.kernel.state import QueueState
from queueber.engine.kernel.transaction import Change
from queueber.engine.records.batches import Side, count_ended


def finish(
    queue: QueueState,
    change: Change,
    items: Sequence[tuple[bytes, bytes]],
    side: Side | None,
    now_ms: int,
) -> None:
    """Items, given as id and mark, that are nowhere any more are gone.

    `side` is how they count in their batches; None when they have been counted before.
    """
    prefix = queue.prefix
    change.batch.delete_many(Family.ITEMS, [prefix + item_id for item_id, _ in items])
    marks = [mark for _, mark in items]
    sizes = {mark: mark_size(mark) for mark in set(marks)}
    change.counters.contents_bytes -= sum([sizes[mark] for mark in marks])
    if not all(map(is_plain, sizes)):
        special = [item for item in items if not is_plain(item[1])]
        failed = [prefix + item_id for item_id, mark in special if mark_attempts(mark)]
        change.batch.delete_many(Family.ATTEMPTS, failed)
        if side is not None:  # the dead are no suspects any more
            change.counters.suspects -= sum(1 for _, mark in special if mark_group_max(mark))
            count_ended(queue, change, special, side, now_ms)
