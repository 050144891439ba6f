"""Reads record batches of new items, checks them, and makes the rows to load or add."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from queueber.errors import InvalidArgument
from queueber.limits import (
    ATTRIBUTES_BYTES_MAX,
    ATTRIBUTES_MAX,
    DELAY_MS_MAX,
    KEY_BYTES_MAX,
    MIB,
    PRIORITY_DEFAULT,
    PRIORITY_MAX,
)
from queueber.model import PackedContents, Rows

T = TypeVar("T", int, str)


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
    if batch.num_rows > 1 and _contents(batch).nbytes > limits.slice_bytes:
        half = batch.num_rows // 2
        yield from read_rows(batch.slice(0, half), first_row, limits)
        yield from read_rows(batch.slice(half), first_row + half, limits)
        return
    check = _RowCheck(batch, first_row)
    contents = _contents(batch)
    check.nulls("contents", contents)
    check.highest("contents", pc.binary_length(contents), limits.item_bytes_max, "bytes")
    yield Rows(
        contents=_packed(contents),
        visible_at_ms=_visible_at_ms(check, limits),
        priorities=_priorities(check),
        keys=_keys(check),
        attributes=_attributes(check),
    )


def _contents(batch: pa.RecordBatch) -> pa.Array:
    contents = batch.column("contents")
    if pa.types.is_string(contents.type):
        return contents.cast(pa.binary())
    if pa.types.is_large_string(contents.type):
        return contents.cast(pa.large_binary())
    return contents


def _packed(contents: pa.Array) -> PackedContents:
    """The contents as they are in Arrow's buffer, without a copy."""
    # A slice is not large, so the offsets of Arrow's usual type of 4 bytes are enough.
    column = contents.cast(pa.binary())
    _, offsets, values = column.buffers()
    bounds = memoryview(offsets).cast("I")[column.offset : column.offset + len(column) + 1]
    return PackedContents(memoryview(values or b""), bounds[1:], bounds[0])


class _RowCheck:
    """Checks columns of a record batch; errors name the row of a bad value."""

    def __init__(self, batch: pa.RecordBatch, first_row: int) -> None:
        self._batch = batch
        self._first_row = first_row

    def column(self, name: str) -> pa.Array | None:
        """The column; None if it is missing or has only nulls."""
        if name not in self._batch.schema.names:
            return None
        column = self._batch.column(name)
        return None if column.null_count == len(column) else column

    def nulls(self, name: str, column: pa.Array) -> None:
        if column.null_count:
            row = column.is_null().index(True).as_py()
            raise self.refusal(name, row, "none; every item has contents")

    def highest(self, name: str, values: Any, limit: int, unit: str) -> None:
        most = pc.max(values).as_py()
        if most is not None and most > limit:
            row = pc.index(values, most).as_py()
            raise self.refusal(name, row, f"{most} {unit}; the limit is {limit}")

    def range(self, name: str, values: Any, low: int, high: int) -> None:
        found = pc.min_max(values).as_py()
        for value in (found["min"], found["max"]):
            if value is not None and not low <= value <= high:
                row = pc.index(values, value).as_py()
                raise self.refusal(name, row, f"{value}; it must be {low} to {high}")

    def refusal(self, name: str, row: int, has: str) -> InvalidArgument:
        """The error for a row; `has` says what the row has in the column."""
        where = f"row {self._first_row + row} of its partition"
        return InvalidArgument(f"column {name!r}: {where} has {has}")


def _filled(column: pa.Array, missing: T) -> list[T]:
    """The values, with `missing` for those that are null."""
    values: list[T] = (column.fill_null(missing) if column.null_count else column).to_pylist()
    return values


def _visible_at_ms(check: _RowCheck, limits: RowLimits) -> Sequence[int]:
    delays = check.column("delay_ms")
    if delays is not None:
        delays = delays.cast(pa.int64())
        check.range("delay_ms", delays, 0, DELAY_MS_MAX)
        return [limits.started_at_ms + each if each else 0 for each in _filled(delays, 0)]
    times = check.column("visible_at")
    if times is None:
        return ()
    times_ms = pc.divide(times.cast(pa.int64()), 1000)
    latest = limits.started_at_ms + DELAY_MS_MAX
    check.highest("visible_at", times_ms, latest, "ms since the epoch")
    return [max(0, each) for each in _filled(times_ms, 0)]


def _priorities(check: _RowCheck) -> Sequence[int]:
    column = check.column("priority")
    if column is None:
        return ()
    check.range("priority", column, 0, PRIORITY_MAX)
    return _filled(column, PRIORITY_DEFAULT)


def _keys(check: _RowCheck) -> Sequence[str]:
    column = check.column("key")
    if column is None:
        return ()
    check.highest("key", pc.binary_length(column), KEY_BYTES_MAX, "bytes")
    return _filled(column, "")


def _attributes(check: _RowCheck) -> Sequence[dict[str, str]]:
    column = check.column("attributes")
    if column is None:
        return ()
    mappings = [_to_mapping(check, row, each) for row, each in enumerate(column.to_pylist())]
    return mappings if any(mappings) else ()


def _to_mapping(
    check: _RowCheck, row: int, pairs: Sequence[tuple[str, str | None]] | None
) -> dict[str, str]:
    mapping: dict[str, str] = {}
    size = 0
    for name, value in pairs or ():
        if value is None:
            raise check.refusal("attributes", row, f"{name!r} without a value")
        mapping[name] = value
        size += len(name.encode()) + len(value.encode())
    if len(mapping) > ATTRIBUTES_MAX:
        raise check.refusal("attributes", row, f"{len(mapping)}; the limit is {ATTRIBUTES_MAX}")
    if size > ATTRIBUTES_BYTES_MAX:
        raise check.refusal(
            "attributes", row, f"{size} bytes of them; the limit is {ATTRIBUTES_BYTES_MAX}"
        )
    return mapping
