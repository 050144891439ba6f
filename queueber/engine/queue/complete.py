"""Complete: the work is done. Delete the item, and append its result to the queue's results.

Both happen in one batch, so an item has a result exactly if it was completed, and at most one.
"""

from collections.abc import Mapping, Sequence
from itertools import accumulate, chain, compress, islice, pairwise

from queueber.db.records.log import result_head
from queueber.db.records.runs import (
    MARK_ATTEMPTS_MAX,
    Run,
    count_items,
    mark_attempts,
    mark_batch,
    mark_has_details,
)
from queueber.engine.log import append
from queueber.engine.queue.changes import Change, gone
from queueber.engine.queue.lifecycle import State
from queueber.engine.queue.queue_state import QueueTx
from queueber.engine.queue.remove import finish
from queueber.engine.records.batches import Side
from queueber.ids import made_at_ms
from queueber.limits import ID_BYTES


def complete(
    tx: QueueTx, ids: Sequence[bytes], leases: Sequence[bytes], results: Sequence[bytes]
) -> list[bool]:
    """For each id, whether its lease held it and its result is now stored.

    `leases` and `results` have one for each id.
    """
    taken = tx.queue.leases.take(tx, ids, leases)
    if taken.is_in_order:
        _store(tx, taken.runs, _rows(tx, taken.runs, results))
    elif taken.runs:
        complete_runs(tx, taken.runs, dict(compress(zip(ids, results, strict=True), taken.held)))
    return taken.held


def complete_runs(tx: QueueTx, runs: Sequence[Run], results: Mapping[bytes, bytes]) -> None:
    """Complete items that were taken out of their leases; `results` has one for each id.

    The log has them in the order of `results`, which need not be that of the runs.
    """
    by_run = [results[item_id] for run in runs for item_id in run.ids]
    rows = {row[:ID_BYTES]: row for row in _rows(tx, runs, by_run)}
    _store(tx, runs, [rows[item_id] for item_id in results])


def complete_whole(
    tx: QueueTx, leases: Sequence[bytes], counts: Sequence[int], results: Sequence[bytes]
) -> list[bool]:
    """For each lease, whether it held as many items as its count says; these are now completed.

    `results` has one for each item of all leases, in the order in which the polls gave them.
    """
    taken = tx.queue.leases.take_whole(tx, leases, counts)
    if all(taken):
        given = results
    else:
        bounds = pairwise(accumulate(counts, initial=0))
        given = [
            result
            for runs, (start, stop) in zip(taken, bounds, strict=True)
            if runs
            for result in results[start:stop]
        ]
    runs = list(chain.from_iterable(taken))
    if runs:
        _store(tx, runs, _rows(tx, runs, given))
    return [bool(of_lease) for of_lease in taken]


def _store(tx: QueueTx, runs: Sequence[Run], rows: Sequence[bytes]) -> None:
    """Delete items that were taken out of their leases, and append the rows of their results."""
    if tx.queue.changes is not None:
        tx.queue.changes.moved(tx, gone(Change.COMPLETED, runs, State.LEASED))
    finish(tx, runs, Side.DONE)
    tx.counters.completed_total += count_items(runs)
    # No result is older than its item, also if the clock was set back: `find` relies on that.
    newest_ms = made_at_ms(tx.counters.last_id)
    head = append(tx, tx.queue.results, rows, not_before_ms=newest_ms)
    tx.due(tx.queue.results_due_ms(tx.now_ms, head=head))


def _rows(tx: QueueTx, runs: Sequence[Run], results: Sequence[bytes]) -> list[bytes]:
    """The rows of results, one for each item of the runs in order."""
    blocks, name = tx.queue.blocks.reader(), tx.queue.batches.names.name
    left = iter(results)
    rows: list[bytes] = []
    for run in runs:
        attempt = min(mark_attempts(run.mark) + 1, MARK_ATTEMPTS_MAX)
        batch = name(mark_batch(run.mark)).encode()
        given = islice(left, run.count)
        if mark_has_details(run.mark):
            keys, attributes = blocks[run].details(run.at, run.count)
            for item_id, key, packed, result in zip(run.ids, keys, attributes, given, strict=True):
                rows.append(item_id + result_head(attempt, key, batch, packed) + result)
        else:
            head = result_head(attempt, b"", batch, b"")
            rows += [item_id + head + r for item_id, r in zip(run.ids, given, strict=True)]
    return rows
