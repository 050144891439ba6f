"""Complete: the work is done. Delete the item, and append its result to the queue's results.

Both happen in one batch, so an item has a result exactly if it was completed, and at most one.
"""

from collections.abc import Sequence

from queueber.db.families import Family
from queueber.db.records.items import decode_details
from queueber.db.records.keys import (
    MARK_ATTEMPTS_MAX,
    PLAIN_TAILS,
    SIZE_BYTES,
    HeldItem,
    mark_attempts,
    mark_batch,
    mark_has_details,
)
from queueber.db.records.log import PLAIN_RESULT, encode_result
from queueber.engine.log import append
from queueber.engine.queue.leases import held_items
from queueber.engine.queue.queue_state import QueueTx
from queueber.engine.queue.remove import finish
from queueber.engine.records.batches import Side


def complete(
    tx: QueueTx, ids: Sequence[bytes], leases: Sequence[bytes], results: Sequence[bytes]
) -> list[bool]:
    """For each id, whether its lease held it and its result is now stored.

    `leases` and `results` have one for each id.
    """
    queue = tx.queue
    marks = queue.leases.take(tx, ids, leases)
    gone = held_items(ids, marks)
    if not gone:
        return [False] * len(ids)
    given = [r for r, mark in zip(results, marks, strict=True) if mark is not None]
    if {mark[SIZE_BYTES:] for _, mark in gone} == PLAIN_TAILS:
        rows = [i + PLAIN_RESULT + result for (i, _), result in zip(gone, given, strict=True)]
    else:
        rows = _rows(tx, gone, given)
    # Not earlier: the lines above read the items' records.
    finish(tx, gone, Side.DONE)
    tx.counters.completed_total += len(gone)
    head = append(tx, queue.results, rows)
    tx.due(queue.results_due_ms(tx.now_ms, head=head))
    return [mark is not None for mark in marks]


def _rows(tx: QueueTx, gone: Sequence[HeldItem], results: Sequence[bytes]) -> list[bytes]:
    detailed = [tx.prefix + item_id for item_id, mark in gone if mark_has_details(mark)]
    records = iter(tx.store.get_many(Family.ITEMS, detailed) if detailed else [])
    name = tx.queue.batches.names.name
    rows = []
    for (item_id, mark), result in zip(gone, results, strict=True):
        key = attributes = b""
        if mark_has_details(mark):
            key, attributes = decode_details(next(records) or b"")
        rows.append(
            encode_result(
                item_id,
                result,
                attempt=min(mark_attempts(mark) + 1, MARK_ATTEMPTS_MAX),
                key=key,
                batch=name(mark_batch(mark)).encode(),
                attributes=attributes,
            )
        )
    return rows
