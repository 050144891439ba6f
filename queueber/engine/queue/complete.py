"""Complete: the work is done, the item goes, and its result is appended to the queue's results.

Both happen in one batch, so an item has a result exactly if it was completed, and at most one.
"""

from collections.abc import Sequence

from queueber.db.families import Family
from queueber.db.records.items import decode_details
from queueber.db.records.marks import (
    PLAIN_TAILS,
    SIZE_BYTES,
    mark_attempts,
    mark_batch,
    mark_has_details,
)
from queueber.db.records.results import PLAIN_RESULT, encode_result
from queueber.engine.kernel.state import Engine, QueueState
from queueber.engine.kernel.transaction import Change
from queueber.engine.log.log import append
from queueber.engine.queue.finish import finish
from queueber.engine.queue.leases import take_held
from queueber.engine.records.batches import Side, batch_name


def complete(
    engine: Engine,
    queue: QueueState,
    ids: Sequence[bytes],
    leases: Sequence[bytes],
    results: Sequence[bytes],
    now_ms: int,
) -> list[bool]:
    """For each id, whether its lease held it and its result is now stored.

    `leases` and `results` have one for each id.
    """
    change = Change(engine, queue)
    marks = take_held(engine, queue, change, ids, leases, now_ms)
    gone = [(i, mark) for i, mark in zip(ids, marks, strict=True) if mark is not None]
    if not gone:
        return [False] * len(ids)
    given = [r for r, mark in zip(results, marks, strict=True) if mark is not None]
    if {mark[SIZE_BYTES:] for _, mark in gone} == PLAIN_TAILS:
        rows = [i + PLAIN_RESULT + result for (i, _), result in zip(gone, given, strict=True)]
    else:
        rows = _rows(engine, queue, gone, given)
    # Before the items go: their keys are read above.
    finish(queue, change, gone, Side.DONE, now_ms)
    change.counters.completed_total += len(gone)
    change.log_head = append(change.batch, queue.results, rows, now_ms)
    change.commit()
    engine.agenda.schedule(queue.queue_id, queue.results_due_ms(now_ms))
    return [mark is not None for mark in marks]


def _rows(
    engine: Engine,
    queue: QueueState,
    gone: Sequence[tuple[bytes, bytes]],
    results: Sequence[bytes],
) -> list[bytes]:
    prefix = queue.prefix
    detailed = [prefix + item_id for item_id, mark in gone if mark_has_details(mark)]
    records = iter(engine.store.get_many(Family.ITEMS, detailed) if detailed else [])
    rows = []
    for (item_id, mark), result in zip(gone, results, strict=True):
        key = attributes = b""
        if mark_has_details(mark):
            key, attributes = decode_details(next(records) or b"")
        rows.append(
            encode_result(
                item_id,
                result,
                attempt=mark_attempts(mark) + 1,
                key=key,
                batch=batch_name(engine, queue, mark_batch(mark)).encode(),
                attributes=attributes,
            )
        )
    return rows
