"""The answer to a SELECT: columns with their types, rows of plain values."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa

from queueber.errors import InvalidArgument


@dataclass(frozen=True, slots=True)
class Column:
    name: str
    type: str
    """As SQL has it: BIGINT, VARCHAR, TIMESTAMP WITH TIME ZONE."""


@dataclass(frozen=True, slots=True)
class SelectResult:
    columns: list[Column]
    rows: list[tuple[Any, ...]] = field(default_factory=list)
    """Text, whole and broken numbers, `Decimal`, bytes, times with a zone, lists and dicts."""


def rows_of(batches: Iterable[pa.RecordBatch], columns: Sequence[Column]) -> list[tuple[Any, ...]]:
    converters = [_converter(column.type) for column in columns]
    rows: list[tuple[Any, ...]] = []
    for batch in batches:
        values = [
            [None if value is None else convert(value) for value in _listed(column, told)]
            for convert, column, told in zip(converters, batch.columns, columns, strict=True)
        ]
        rows += zip(*values, strict=True)
    return rows


def _listed(values: pa.Array, column: Column) -> list[Any]:
    try:
        found: list[Any] = values.to_pylist()
    except (OverflowError, ValueError):
        # DuckDB has infinite times, years that Python does not have, and nanoseconds.
        raise InvalidArgument(
            f"values: column {column.name!r} has a time outside the years 1 to 9999, or parts of a "
            "microsecond; cast it to VARCHAR"
        ) from None
    return found


def _converter(kind: str) -> Callable[[Any], Any]:
    if kind == "HUGEINT":
        return int
    if kind == "UHUGEINT":
        return _unsigned
    if kind == "BIT":
        return _bits
    if kind.startswith("MAP(") and not kind.endswith("]"):
        return _mapping
    if kind in _SIMPLE:
        return _same
    return _value


_SIMPLE = {
    "BOOLEAN", "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER",
    "UBIGINT", "FLOAT", "DOUBLE", "VARCHAR", "BLOB", "JSON", "DATE", "TIME", "UUID",
}  # fmt: skip


def _same(value: Any) -> Any:
    return value


def _unsigned(value: Decimal) -> int:
    """Arrow has no such numbers: the upper half of them comes as negative ones."""
    return int(value) % (1 << 128)


def _bits(value: bytes) -> str:
    """The first byte says how many bits before the first one are not used."""
    return "".join([f"{each:08b}" for each in value[1:]])[value[0] :]


def _value(value: Any) -> Any:
    """Plain values also within lists, and durations as text."""
    match value:
        case datetime():
            return value.astimezone(UTC) if value.tzinfo is not None else value
        case pa.MonthDayNano():
            return _duration(value)
        case dict():
            return {name: _value(each) for name, each in value.items()}
        case list():
            if value and all(isinstance(each, tuple) and len(each) == 2 for each in value):
                return {_key(name): _value(each) for name, each in value}
            return [_value(each) for each in value]
    return value


def _mapping(value: Any) -> Any:
    return {_key(name): _value(each) for name, each in value}


def _key(value: Any) -> Any:
    return value if isinstance(value, (str, int, float, bytes)) else str(value)


def _duration(value: pa.MonthDayNano) -> str:
    """ISO 8601, such as P3DT1.5S."""
    seconds = Decimal(value.nanoseconds) / 1_000_000_000
    parts = [f"{value.months}M" if value.months else "", f"{value.days}D" if value.days else ""]
    days = "".join(parts)
    rest = f"T{seconds.normalize():f}S" if seconds or not days else ""
    return f"P{days}{rest}"
