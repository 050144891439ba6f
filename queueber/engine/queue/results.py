"""Results: the results of completed items, read from their queue's log."""

from queueber.db.records.blocks import unpack_attributes
from queueber.db.records.log import decode_result, is_of_batch
from queueber.engine.log import acknowledge, read
from queueber.engine.log import drop_reader as drop_from_log
from queueber.engine.queue.queue_state import QueueState, QueueTx, View
from queueber.limits import ATTRIBUTE_WIRE_BYTES, ITEM_WIRE_BYTES, READ_LOOKED_AT_MAX
from queueber.model import ALL_COLUMNS, Column, LogStats, Result, Results


def results_of(
    view: View,
    offset: int,
    limit: int,
    bytes_max: int,
    *,
    before: int = 0,
    batch: str = "",
    without: frozenset[Column] = ALL_COLUMNS,
) -> Results:
    """Up to `limit` results from `offset` on that fit into `bytes_max`; at least one, if there is
    one. Only results before an offset (0: all), or of a batch, if they are given.

    For a batch it reads at most `READ_LOOKED_AT_MAX` results, so it may return none though
    there are some: `next_offset` says where to go on.
    """
    rows_max = READ_LOOKED_AT_MAX if batch else limit
    if before:
        if before <= offset:
            return Results([], offset, 0)
        rows_max = min(rows_max, before - offset)
    found = read(view.reads, view.results, offset, rows_max=rows_max, bytes_max=bytes_max)
    wanted = batch.encode()
    results: list[Result] = []
    bytes_left = bytes_max
    for here, (row, time_ms) in enumerate(
        zip(found.rows, found.times_ms, strict=True), found.first_offset
    ):
        if before and here >= before:
            return Results(results, before, min(found.missed, before - offset))
        if batch and not is_of_batch(row, wanted):
            continue
        result = decode_row(here, row, time_ms, without)
        bytes_left -= len(row) + ITEM_WIRE_BYTES + ATTRIBUTE_WIRE_BYTES * len(result.attributes)
        if (bytes_left < 0 and results) or len(results) == limit:
            return Results(results, here, found.missed)
        results.append(result)
    end = found.next_offset
    if before and end > before:  # all results before it are deleted, and some after it
        return Results([], before, before - offset)
    return Results(results, end, found.missed)


def decode_row(
    offset: int, row: bytes, time_ms: int, without: frozenset[Column] = ALL_COLUMNS
) -> Result:
    """The result that a row of the log is."""
    item_id, attempt, key, batch, attributes, result = decode_result(row)
    if without:
        key = b"" if Column.KEYS in without else key
        batch = b"" if Column.BATCHES in without else batch
        attributes = b"" if Column.ATTRIBUTES in without else attributes
        result = b"" if Column.RESULTS in without else result
    return Result(
        offset,
        item_id,
        result,
        time_ms,
        attempt,
        key.decode(),
        batch.decode(),
        unpack_attributes(attributes) if attributes else {},
    )


def ack_results(tx: QueueTx, reader: str, offset: int) -> None:
    """Remember how far the reader is; results that all readers are done with are deleted soon."""
    acknowledge(tx, tx.queue.results, reader, offset)
    tx.after_write(_look_at_results, tx)


def drop_reader(tx: QueueTx, reader: str) -> bool:
    """Forget the reader, so that results no longer wait for it; False when it was not known."""
    dropped = drop_from_log(tx, tx.queue.results, reader)
    tx.after_write(_look_at_results, tx)
    return dropped


def _look_at_results(tx: QueueTx) -> None:
    """What may be deleted depends on all readers, as they are now."""
    tx.schedule(tx.queue.results_due_ms(tx.now_ms))


def results_stats(queue: QueueState) -> LogStats:
    log, head = queue.results, queue.results.head
    return LogStats(head.first_offset, head.next_offset, head.kept_bytes, dict(log.readers))
