"""Columns: the schemas of the tables, and rows of the server as columns of Arrow."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql.types import (
    BinaryType,
    DataType,
    DoubleType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from queueber.errors import InvalidArgument
from queueber.ids import made_at_ms, origin_of
from queueber.model import Column, ItemInfo, ItemState, Result

_TEXTS = MapType(StringType(), StringType())


def _schema(**columns: DataType) -> StructType:
    return StructType([StructField(name, kind) for name, kind in columns.items()])


RESULT_COLUMNS = _schema(
    id=StringType(),
    key=StringType(),
    batch=StringType(),
    status=StringType(),
    result=BinaryType(),
    error=StringType(),
    attempts=IntegerType(),
    added_at=TimestampType(),
    finished_at=TimestampType(),
    partition=IntegerType(),
    row=LongType(),
    attributes=_TEXTS,
)

ITEM_COLUMNS = _schema(
    id=StringType(),
    key=StringType(),
    batch=StringType(),
    state=StringType(),
    contents=BinaryType(),
    priority=IntegerType(),
    attempts=IntegerType(),
    added_at=TimestampType(),
    at=TimestampType(),
    age_seconds=DoubleType(),
    lease=StringType(),
    reason=StringType(),
    last_error=StringType(),
    partition=IntegerType(),
    row=LongType(),
    attributes=_TEXTS,
)

_ON_THE_WIRE = {
    "result": Column.RESULTS,
    "contents": Column.CONTENTS,
    "key": Column.KEYS,
    "batch": Column.BATCHES,
    "attributes": Column.ATTRIBUTES,
}


def wanted_columns(schema: StructType, table: StructType, name: str) -> tuple[str, ...]:
    """The names of the columns that a schema asks for, in its order."""
    kinds = {field.name: field.dataType for field in table.fields}
    for field in schema.fields:
        if field.name not in kinds:
            raise InvalidArgument(
                f"column {field.name!r} is not one of the table {name!r}, which has "
                f"{', '.join(kinds)}"
            )
        if field.dataType.simpleString() != kinds[field.name].simpleString():
            raise InvalidArgument(
                f"column {field.name!r} is {kinds[field.name].simpleString()}, not "
                f"{field.dataType.simpleString()}"
            )
    return tuple(field.name for field in schema.fields)


def unwanted(wanted: Sequence[str]) -> list[Column]:
    """What the server need not send."""
    return [column for name, column in _ON_THE_WIRE.items() if name not in wanted]


# --- rows to columns ------------------------------------------------------------------------------

_UTC = pa.timestamp("us", tz="UTC")
_STRING_MAP = pa.map_(pa.string(), pa.string())


def _ids(ids: Sequence[bytes]) -> Any:
    return pa.array([each.hex() for each in ids], pa.string())


def _texts(texts: Sequence[str]) -> Any:
    return pa.array([each or None for each in texts], pa.string())


def _times(times_ms: Sequence[int]) -> Any:
    return pa.array([each * 1000 for each in times_ms], pa.int64()).cast(_UTC)


def _added_at(ids: Sequence[bytes]) -> Any:
    return _times([made_at_ms(each) for each in ids])


def _maps(maps: Sequence[Mapping[str, str]]) -> Any:
    return pa.array([list(each.items()) for each in maps], _STRING_MAP)


_NOWHERE = (None, None)


def _partitions(ids: Sequence[bytes]) -> Any:
    return pa.array([(origin_of(each) or _NOWHERE)[0] for each in ids], pa.int32())


def _rows(ids: Sequence[bytes]) -> Any:
    return pa.array([(origin_of(each) or _NOWHERE)[1] for each in ids], pa.int64())


def _all(count: int, value: str | None, kind: Any) -> Any:
    return pa.array([value] * count, kind)


_OF_IDS: dict[str, Callable[[Sequence[bytes]], Any]] = {
    "id": _ids,
    "added_at": _added_at,
    "partition": _partitions,
    "row": _rows,
}

_OF_RESULTS: dict[str, Callable[[Sequence[Result]], Any]] = {
    "key": lambda rows: _texts([r.key for r in rows]),
    "batch": lambda rows: _texts([r.batch for r in rows]),
    "status": lambda rows: _all(len(rows), "done", pa.string()),
    "result": lambda rows: pa.array([r.result for r in rows], pa.binary()),
    "error": lambda rows: _all(len(rows), None, pa.string()),
    "attempts": lambda rows: pa.array([r.attempt for r in rows], pa.int32()),
    "finished_at": lambda rows: _times([r.completed_at_ms for r in rows]),
    "attributes": lambda rows: _maps([r.attributes for r in rows]),
}

_OF_ITEMS: dict[str, Callable[[Sequence[ItemInfo]], Any]] = {
    "key": lambda rows: _texts([r.key for r in rows]),
    "batch": lambda rows: _texts([r.batch for r in rows]),
    "contents": lambda rows: pa.array([r.contents for r in rows], pa.binary()),
    "priority": lambda rows: pa.array([r.priority for r in rows], pa.int32()),
    "attempts": lambda rows: pa.array([r.attempts for r in rows], pa.int32()),
    "at": lambda rows: _times([r.at_ms for r in rows]),
    "lease": lambda rows: _texts([r.lease_id.hex() for r in rows]),
    "reason": lambda rows: _texts([r.reason for r in rows]),
    "last_error": lambda rows: _texts([r.last_error for r in rows]),
    "attributes": lambda rows: _maps([r.attributes for r in rows]),
}

_OF_DEAD: dict[str, Callable[[Sequence[ItemInfo]], Any]] = {
    **_OF_ITEMS,
    "status": lambda rows: _all(len(rows), "dead", pa.string()),
    "result": lambda rows: _all(len(rows), None, pa.binary()),
    # One that died with its worker left no words of its own.
    "error": lambda rows: _texts([r.last_error or r.reason for r in rows]),
    "finished_at": lambda rows: _times([r.at_ms for r in rows]),
}

STATE_WORDS = {
    ItemState.READY: "ready",
    ItemState.DELAYED: "delayed",
    ItemState.LEASED: "leased",
    ItemState.DEAD: "dead",
}


def results_batch(rows: Sequence[Result], wanted: Sequence[str]) -> pa.RecordBatch:
    return _batch(rows, wanted, _OF_RESULTS)


def dead_batch(rows: Sequence[ItemInfo], wanted: Sequence[str]) -> pa.RecordBatch:
    """Dead letters, as rows of the table of results."""
    return _batch(rows, wanted, _OF_DEAD)


def items_batch(
    rows: Sequence[ItemInfo], wanted: Sequence[str], state: ItemState, taken_at_ms: int
) -> pa.RecordBatch:
    of_items = {
        **_OF_ITEMS,
        "state": lambda rows: _all(len(rows), STATE_WORDS[state], pa.string()),
        "age_seconds": lambda rows: pa.array(
            [(taken_at_ms - r.added_at_ms) / 1000 for r in rows], pa.float64()
        ),
    }
    return _batch(rows, wanted, of_items)


def _batch(
    rows: Sequence[Any], wanted: Sequence[str], makers: Mapping[str, Callable[[Any], Any]]
) -> pa.RecordBatch:
    ids = [row.id for row in rows]
    columns = [_OF_IDS[name](ids) if name in _OF_IDS else makers[name](rows) for name in wanted]
    return pa.RecordBatch.from_arrays(columns, names=list(wanted))
