"""Columns and values in JSON as clients of KalamDB read them.

Whole numbers of 64 bits are texts, because JavaScript's numbers have 53; bytes are base64.
"""

import asyncio
import base64
import re
from collections.abc import Callable, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from math import isfinite
from typing import Any

import msgspec

from queueber.model import SqlColumn, StatementResult

_ROWS_OF_A_TURN = 200
"""Rows that are encoded before others get a turn of the loop: about a millisecond."""

DataType = str | dict[str, dict[str, int]]

_TYPES: dict[str, DataType] = {
    "BOOLEAN": "Boolean",
    "TINYINT": "SmallInt",
    "UTINYINT": "SmallInt",
    "SMALLINT": "SmallInt",
    "USMALLINT": "Int",
    "INTEGER": "Int",
    "UINTEGER": "BigInt",
    "BIGINT": "BigInt",
    "UBIGINT": "BigInt",
    "HUGEINT": {"Decimal": {"precision": 38, "scale": 0}},
    "UHUGEINT": {"Decimal": {"precision": 38, "scale": 0}},
    "FLOAT": "Float",
    "DOUBLE": "Double",
    "VARCHAR": "Text",
    "BLOB": "Bytes",
    "DATE": "Date",
    "TIME": "Time",
    "TIMESTAMP": "Timestamp",
    "TIMESTAMP WITH TIME ZONE": "DateTime",
    "JSON": "Json",
    "UUID": "Uuid",
}
_DECIMAL = re.compile(r"DECIMAL\((\d+),\s*(\d+)\)")
_NESTED = re.compile(r"(STRUCT|MAP|LIST|UNION)\b|.*\[\d*\]$", re.DOTALL)

_encode = msgspec.json.Encoder().encode


def data_type(of_duckdb: str) -> DataType:
    """KalamDB's name for a type."""
    if of_duckdb in _TYPES:
        return _TYPES[of_duckdb]
    if match := _DECIMAL.fullmatch(of_duckdb):
        return {"Decimal": {"precision": int(match[1]), "scale": int(match[2])}}
    if of_duckdb.startswith("TIMESTAMP"):
        return "Timestamp"
    return "Json" if _NESTED.match(of_duckdb) else "Text"


async def encoded_rows(result: StatementResult) -> bytes:
    """The JSON of all rows; others get turns of the loop meanwhile."""
    writes = [_write_of(column) for column in result.columns]
    parts: list[bytes] = []
    rows = result.rows
    for begin in range(0, len(rows), _ROWS_OF_A_TURN):
        some = [_row(writes, row) for row in rows[begin : begin + _ROWS_OF_A_TURN]]
        parts.append(_encode(some)[1:-1])
        await asyncio.sleep(0)
    return b"[%b]" % b",".join(parts)


def _row(writes: Sequence[Callable[[Any], Any]], row: Sequence[Any]) -> list[Any]:
    return [None if v is None else write(v) for write, v in zip(writes, row, strict=True)]


def _write_of(column: SqlColumn) -> Callable[[Any], Any]:
    kind = data_type(column.type)
    return str if kind == "BigInt" or isinstance(kind, dict) else to_json


def to_json(value: Any) -> Any:
    """A value without its type: for those in lists and structs, too."""
    match value:
        case None | bool() | str():
            return value
        case int():
            return value if -(1 << 53) <= value <= 1 << 53 else str(value)
        case float():
            return value if isfinite(value) else str(value)
        case bytes() | bytearray() | memoryview():
            return base64.b64encode(value).decode()
        case datetime() | date() | time():
            return value.isoformat()
        case Decimal():
            return str(value)
        case list() | tuple():
            return [to_json(each) for each in value]
        case dict():
            return {str(name): to_json(each) for name, each in value.items()}
        case _:
            return str(value)
