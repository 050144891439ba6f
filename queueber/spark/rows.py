"""Rows of a DataFrame as Arrow has them, turned into what is loaded or added, and checked."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from queueber.client.arguments.new_items import to_attributes
from queueber.errors import InvalidArgument
from queueber.limits import DELAY_MS_MAX, KEY_BYTES_MAX, MIB, PRIORITY_DEFAULT, PRIORITY_MAX
from queueber.model import Rows


@dataclass(frozen=True, slots=True)
class RowLimits:
    item_bytes_max: int
    started_at_ms: int
    """What a delay counts from."""
    slice_bytes: int = 16 * MIB
    """Contents that are turned into Python's objects at a time."""


def read_rows(batch: pa.RecordBatch, first_row: int, limits: RowLimits) -> Iterator[Rows]:
    """The rows of a batch, in slices that fit into memory. `first_row` is the number of its first.

    A row that cannot be stored is an `InvalidArgument` that names it.
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
        contents=contents.to_pylist(),
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


class _RowCheck:
    def __init__(self, batch: pa.RecordBatch, first_row: int) -> None:
        self._batch = batch
        self._first_row = first_row
        self.rows: int = batch.num_rows

    def column(self, name: str) -> pa.Array | None:
        """The column, unless it is missing or says nothing."""
        if name not in self._batch.schema.names:
            return None
        column = self._batch.column(name)
        return None if column.null_count == len(column) else column

    def nulls(self, name: str, column: pa.Array) -> None:
        if column.null_count:
            row = column.is_null().index(True).as_py()
            raise InvalidArgument(
                f"column {name!r}: {self.name_of(row)} has none; every item has contents"
            )

    def highest(self, name: str, values: Any, limit: int, unit: str) -> None:
        most = pc.max(values).as_py()
        if most is not None and most > limit:
            row = pc.index(values, most).as_py()
            raise InvalidArgument(
                f"column {name!r}: {self.name_of(row)} has {most} {unit}; the limit is {limit}"
            )

    def range(self, name: str, values: Any, low: int, high: int) -> None:
        found = pc.min_max(values).as_py()
        for value in (found["min"], found["max"]):
            if value is not None and not low <= value <= high:
                row = pc.index(values, value).as_py()
                raise InvalidArgument(
                    f"column {name!r}: {self.name_of(row)} has {value}; it must be {low} to {high}"
                )

    def name_of(self, row: int) -> str:
        return f"row {self._first_row + row} of its partition"


def _numbers(column: pa.Array, missing: int) -> list[int]:
    filled = column.fill_null(missing) if column.null_count else column
    numbers: list[int] = filled.to_pylist()
    return numbers


def _visible_at_ms(check: _RowCheck, limits: RowLimits) -> Sequence[int]:
    delays = check.column("delay_ms")
    if delays is not None:
        delays = delays.cast(pa.int64())
        check.range("delay_ms", delays, 0, DELAY_MS_MAX)
        return [limits.started_at_ms + each if each else 0 for each in _numbers(delays, 0)]
    times = check.column("visible_at")
    if times is None:
        return ()
    times_ms = pc.divide(times.cast(pa.int64()), 1000)
    latest = limits.started_at_ms + DELAY_MS_MAX
    check.highest("visible_at", times_ms, latest, "ms since the epoch")
    return [max(0, each) for each in _numbers(times_ms, 0)]


def _priorities(check: _RowCheck) -> Sequence[int]:
    column = check.column("priority")
    if column is None:
        return ()
    check.range("priority", column, 0, PRIORITY_MAX)
    return _numbers(column, PRIORITY_DEFAULT)


def _keys(check: _RowCheck) -> Sequence[str]:
    column = check.column("key")
    if column is None:
        return ()
    check.highest("key", pc.binary_length(column), KEY_BYTES_MAX, "bytes")
    keys: list[str] = (column.fill_null("") if column.null_count else column).to_pylist()
    return keys


def _attributes(check: _RowCheck) -> Sequence[dict[str, str]]:
    column = check.column("attributes")
    if column is None:
        return ()
    pairs = column.to_pylist()
    for row, each in enumerate(pairs):
        for name, value in each or ():
            if value is None:
                raise InvalidArgument(
                    f"column 'attributes': {check.name_of(row)} has {name!r} without a value"
                )
    mappings = [dict(each or ()) for each in pairs]
    try:
        return to_attributes(mappings, check.rows)
    except InvalidArgument:
        # Which one it is we look for only now, for hardly any has too many.
        for row, each in enumerate(mappings):
            _check_attributes(check.name_of(row), each)
        raise


def _check_attributes(row_name: str, attributes: dict[str, str]) -> None:
    try:
        to_attributes(attributes, 1)
    except InvalidArgument as error:
        why = str(error).removeprefix("attributes: ").replace("an item", row_name)
        raise InvalidArgument(f"column 'attributes': {why}") from None
