"""Checks and conversions that record batches of items and of messages have in common."""

from collections.abc import Sequence
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from queueber.errors import InvalidArgument
from queueber.limits import ATTRIBUTES_BYTES_MAX, ATTRIBUTES_MAX, KEY_BYTES_MAX
from queueber.model import PackedContents

T = TypeVar("T", int, str)


def to_bytes(column: pa.Array) -> pa.Array:
    """A column of bytes or text as one of bytes."""
    if pa.types.is_string(column.type):
        return column.cast(pa.binary())
    if pa.types.is_large_string(column.type):
        return column.cast(pa.large_binary())
    return column


def packed(contents: pa.Array) -> PackedContents:
    """The contents as they are in Arrow's buffer, without a copy."""
    # A slice is not large, so the offsets of Arrow's usual type of 4 bytes are enough.
    column = contents.cast(pa.binary())
    _, offsets, values = column.buffers()
    bounds = memoryview(offsets).cast("I")[column.offset : column.offset + len(column) + 1]
    return PackedContents(memoryview(values or b""), bounds[1:], bounds[0])


class RowCheck:
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

    def nulls(self, name: str, column: pa.Array, why: str) -> None:
        """Refuse a row that has nothing in the column; `why` says why it must not."""
        if column.null_count:
            row = column.is_null().index(True).as_py()
            raise self.refusal(name, row, f"none; {why}")

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


def filled(column: pa.Array, missing: T) -> list[T]:
    """The values, with `missing` for those that are null."""
    values: list[T] = (column.fill_null(missing) if column.null_count else column).to_pylist()
    return values


def read_keys(check: RowCheck) -> Sequence[str]:
    column = check.column("key")
    if column is None:
        return ()
    check.highest("key", pc.binary_length(column), KEY_BYTES_MAX, "bytes")
    return filled(column, "")


def read_attributes(check: RowCheck) -> Sequence[dict[str, str]]:
    column = check.column("attributes")
    if column is None:
        return ()
    mappings = [_to_mapping(check, row, each) for row, each in enumerate(column.to_pylist())]
    return mappings if any(mappings) else ()


def _to_mapping(
    check: RowCheck, row: int, pairs: Sequence[tuple[str, str | None]] | None
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
