"""Results: what completed items left in their queue's log, as its readers see them."""

from queueber.db.result_rows import decode_result
from queueber.engine.log import read
from queueber.engine.state import Engine, QueueState
from queueber.limits import ITEM_WIRE_BYTES
from queueber.model import LogStats, Result, Results


def read_results(
    engine: Engine, queue: QueueState, offset: int, limit: int, bytes_max: int
) -> Results:
    """Up to `limit` results from `offset` on: at least one, if there is one, and else no more than
    fit into an answer of `bytes_max`."""
    found = read(engine.store, queue.results, offset, rows_max=limit, bytes_max=bytes_max)
    results: list[Result] = []
    room = bytes_max
    for offset_here, (row, time_ms) in enumerate(
        zip(found.rows, found.times_ms, strict=True), found.first_offset
    ):
        room -= len(row) + ITEM_WIRE_BYTES
        if room < 0 and results:
            break
        item_id, attempt, key, batch, result = decode_result(row)
        results.append(Result(offset_here, item_id, result, time_ms, attempt, key, batch))
    return Results(results, found.first_offset + len(results), found.missed)


def results_stats(queue: QueueState) -> LogStats:
    head = queue.results.head
    return LogStats(
        head.first_offset,
        head.next_offset,
        head.kept_bytes,
        dict(queue.results.readers),
    )
