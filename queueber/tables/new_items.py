"""Reads record batches of new items, checks them, and makes the rows to load or add."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from queueber.limits import DELAY_MS_MAX, MIB, PRIORITY_DEFAULT, PRIORITY_MAX
from queueber.model import Rows
from queueber.tables.row_check import (
    RowCheck,
    filled,
    packed,
    read_attributes,
    read_keys,
    to_bytes,
)


@dataclass(frozen=True, slots=True)
class RowLimits:
    item_bytes_max: int
    started_at_ms: int
    """The time from which delays count."""
    slice_bytes: int = 16 * MIB
    """How many bytes of contents are read at a time."""


def read_rows(batch: pa.RecordBatch, first_row: int, limits: RowLimits) -> Iterator[Rows]:
    """The rows of a record batch, in slices that fit into memory.

    `first_row` is the number of its first row in the partition. If a row cannot be stored, raises
    `InvalidArgument` with the row's number.
    """
    if not batch.num_rows:
        return
    if batch.num_rows > 1 and to_bytes(batch.column("contents")).nbytes > limits.slice_bytes:
        half = batch.num_rows // 2
        yield from read_rows(batch.slice(0, half), first_row, limits)
        yield from read_rows(batch.slice(half), first_row + half, limits)
        return
    check = RowCheck(batch, first_row)
    contents = to_bytes(batch.column("contents"))
    check.nulls("contents", contents, "every item has contents")
    check.highest("contents", pc.binary_length(contents), limits.item_bytes_max, "bytes")
    yield Rows(
        contents=packed(contents),
        visible_at_ms=_visible_at_ms(check, limits),
        priorities=_priorities(check),
        keys=read_keys(check),
        attributes=read_attributes(check),
    )


def _visible_at_ms(check: RowCheck, limits: RowLimits) -> Sequence[int]:
    delays = check.column("delay_ms")
    if delays is not None:
        delays = delays.cast(pa.int64())
        check.range("delay_ms", delays, 0, DELAY_MS_MAX)
        return [limits.started_at_ms + each if each else 0 for each in filled(delays, 0)]
    times = check.column("visible_at")
    if times is None:
        return ()
    times_ms = pc.divide(times.cast(pa.int64()), 1000)
    latest = limits.started_at_ms + DELAY_MS_MAX
    check.highest("visible_at", times_ms, latest, "ms since the epoch")
    return [max(0, each) for each in filled(times_ms, 0)]


def _priorities(check: RowCheck) -> Sequence[int]:
    column = check.column("priority")
    if column is None:
        return ()
    check.range("priority", column, 0, PRIORITY_MAX)
    return filled(column, PRIORITY_DEFAULT)
