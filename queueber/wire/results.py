"""Codecs of receipts and results: messages to plain values and back."""

from collections.abc import Sequence
from typing import Any

from queueber.model import BatchInfo, LogStats, Receipt, Result, ResultColumns, Results
from queueber.schema import wire
from queueber.wire import lists

_ATTRIBUTES = wire.ReadResponse.schema.fields["attributes"]
_RECEIPT = lists.Codec(Receipt)
write_receipt, read_receipt = _RECEIPT.write, _RECEIPT.read
_LOG_STATS = lists.Codec(LogStats, without=("readers",))


def write_batches(results: Any, batches: Sequence[BatchInfo], more: bool) -> None:
    results.more = more
    listed = results.init("batches", len(batches))
    for at, batch in enumerate(batches):
        listed[at].number = batch.number
        write_receipt(listed[at].init("receipt"), batch.receipt)


def read_batches(results: Any) -> tuple[list[BatchInfo], bool]:
    """A page of batches, and whether there are more."""
    listed = [BatchInfo(each.number, read_receipt(each.receipt)) for each in results.batches]
    return listed, results.more


def write_results(response: Any, read: Results, *, with_offsets: bool = False) -> None:
    results = read.results
    response.firstOffset = results[0].offset if results else read.next_offset
    response.nextOffset = read.next_offset
    response.missed = read.missed
    response.ids = [each.id for each in results]
    lists.write_unless_empty(response, "results", [each.result for each in results])
    response.completedAtMs = [each.completed_at_ms for each in results]
    response.attempts = [each.attempt for each in results]
    lists.write_unless_empty(response, "keys", [each.key for each in results])
    lists.write_unless_empty(response, "batches", [each.batch for each in results])
    attributes = [each.attributes for each in results]
    if any(attributes):
        lists.write_attribute_columns(response.init("attributes"), attributes)
    if with_offsets:
        response.offsets = [each.offset for each in results]


def read_results(response: Any) -> ResultColumns:
    ids = list(response.ids)
    count, first = len(ids), response.firstOffset
    no_text = [""] * count
    attributes: list[dict[str, str]] = []
    if response._has_by_field(_ATTRIBUTES):
        attributes = lists.read_attribute_columns(response.attributes, count)
    return ResultColumns(
        list(response.offsets) or range(first, first + count),
        ids,
        list(response.results) or [b""] * count,
        list(response.completedAtMs),
        list(response.attempts),
        list(response.keys) or no_text,
        list(response.batches) or no_text,
        attributes or [{} for _ in ids],
        response.nextOffset,
        response.missed,
    )


def results_of(columns: ResultColumns) -> Results:
    """The rows of a page."""
    rows = zip(
        columns.offsets,
        columns.ids,
        columns.results,
        columns.completed_at_ms,
        columns.attempts,
        columns.keys,
        columns.batches,
        columns.attributes,
        strict=True,
    )
    return Results([Result(*row) for row in rows], columns.next_offset, columns.missed)


def write_log_stats(target: Any, stats: LogStats) -> None:
    _LOG_STATS.write(target, stats)
    readers = target.init("readers", len(stats.readers))
    for at, (name, offset) in enumerate(stats.readers.items()):
        readers[at].name = name
        readers[at].offset = offset


def read_log_stats(source: Any) -> LogStats:
    readers = {reader.name: reader.offset for reader in source.readers}
    return _LOG_STATS.read(source, readers=readers)
