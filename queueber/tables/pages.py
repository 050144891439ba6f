"""The tables of results and items, and pages of the client as their rows: each list a column.

`names` lists the columns of a record batch in order; no other column is built.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import pyarrow as pa

from queueber.ids import made_at_ms, origin_of
from queueber.model import Column, ItemColumns, ItemState, ResultColumns

TIME = pa.timestamp("us", tz="UTC")
TEXT_MAP = pa.map_(pa.string(), pa.string())
TEXT_LIST = pa.list_(pa.string())

RESULTS = pa.schema(
    {
        "id": pa.string(),
        "key": pa.string(),
        "batch": pa.string(),
        "status": pa.string(),
        "result": pa.binary(),
        "error": pa.string(),
        "attempts": pa.int32(),
        "added_at": TIME,
        "finished_at": TIME,
        "partition": pa.int32(),
        "row": pa.int64(),
        "attributes": TEXT_MAP,
    }
)
"""Completed items and dead letters."""

ITEMS = pa.schema(
    {
        "id": pa.string(),
        "key": pa.string(),
        "batch": pa.string(),
        "state": pa.string(),
        "contents": pa.binary(),
        "priority": pa.int32(),
        "attempts": pa.int32(),
        "deliveries": pa.int32(),
        "added_at": TIME,
        "at": TIME,
        "age_seconds": pa.float64(),
        "lease": pa.string(),
        "reason": pa.string(),
        "last_error": pa.string(),
        "partition": pa.int32(),
        "row": pa.int64(),
        "attributes": TEXT_MAP,
        "after": TEXT_LIST,
        "after_batch": pa.string(),
    }
)
"""Items that are in a queue, in any state."""

_SENT_ON_DEMAND = {
    "result": Column.RESULTS,
    "contents": Column.CONTENTS,
    "key": Column.KEYS,
    "batch": Column.BATCHES,
    "attributes": Column.ATTRIBUTES,
}


def unwanted(names: Collection[str]) -> list[Column]:
    """The columns that the server need not send if only these columns of a table are read."""
    return [column for name, column in _SENT_ON_DEMAND.items() if name not in names]


Values = Mapping[str, Callable[[], Sequence[Any]]]
"""For each column a function that makes its values."""


def results_page(page: ResultColumns, names: Sequence[str]) -> pa.RecordBatch:
    """Completed items as rows of the table of results."""
    values: Values = {
        **_of_both(page),
        "status": lambda: ["done"] * len(page.ids),
        "result": lambda: page.results,
        "error": lambda: [None] * len(page.ids),
        "finished_at": lambda: _micros(page.completed_at_ms),
    }
    return _record_batch(RESULTS, names, page.ids, values)


def dead_page(page: ItemColumns, names: Sequence[str]) -> pa.RecordBatch:
    """Dead letters as rows of the table of results."""
    values: Values = {
        **_of_both(page),
        "status": lambda: ["dead"] * len(page.ids),
        "result": lambda: [None] * len(page.ids),
        # An item whose worker died has no error of its own.
        "error": lambda: [
            error or reason or None
            for error, reason in zip(page.last_errors, page.reasons, strict=True)
        ],
        "finished_at": lambda: _micros(page.at_ms),
    }
    return _record_batch(RESULTS, names, page.ids, values)


def items_page(
    page: ItemColumns, names: Sequence[str], state: ItemState, taken_at_ms: int
) -> pa.RecordBatch:
    """Items of one state as rows of the table of items. Ages are those at `taken_at_ms`."""
    values: Values = {
        **_of_both(page),
        "state": lambda: [state.value] * len(page.ids),
        "contents": lambda: page.contents,
        "priority": lambda: page.priorities,
        "deliveries": lambda: page.deliveries or page.attempts,
        "at": lambda: _micros(page.at_ms),
        "age_seconds": lambda: [(taken_at_ms - made_at_ms(each)) / 1000 for each in page.ids],
        "lease": lambda: [each.hex() or None for each in page.lease_ids],
        "reason": lambda: _texts(page.reasons),
        "last_error": lambda: _texts(page.last_errors),
        "after": lambda: [
            [each.hex() for each in awaited] for awaited in page.after or [()] * len(page.ids)
        ],
        "after_batch": lambda: _texts(page.after_batches or [""] * len(page.ids)),
    }
    return _record_batch(ITEMS, names, page.ids, values)


def _of_both(page: ItemColumns | ResultColumns) -> Values:
    return {
        "key": lambda: _texts(page.keys),
        "batch": lambda: _texts(page.batches),
        "attempts": lambda: page.attempts,
        "attributes": lambda: _maps(page.attributes),
    }


def _of_ids(ids: Sequence[bytes]) -> Values:
    """The columns that an id contains: when its item was added, and its row in a load."""

    def origins(at: int) -> list[int | None]:
        return [None if origin is None else origin[at] for origin in map(origin_of, ids)]

    return {
        "id": lambda: [each.hex() for each in ids],
        "added_at": lambda: _micros([made_at_ms(each) for each in ids]),
        "partition": lambda: origins(0),
        "row": lambda: origins(1),
    }


def _record_batch(
    schema: pa.Schema, names: Sequence[str], ids: Sequence[bytes], values: Values
) -> pa.RecordBatch:
    made = {**_of_ids(ids), **values}
    arrays = [_array(made[name](), schema.field(name).type) for name in names]
    return pa.RecordBatch.from_arrays(arrays, names=list(names))


def _array(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    # Arrow converts numbers to times only with a cast.
    return pa.array(values, pa.int64()).cast(TIME) if kind == TIME else pa.array(values, kind)


def _texts(texts: Sequence[str]) -> list[str | None]:
    return [each or None for each in texts]


def _micros(times_ms: Sequence[int]) -> list[int]:
    return [each * 1000 for each in times_ms]


def _maps(maps: Sequence[Mapping[str, str]]) -> list[list[tuple[str, str]]]:
    return [list(each.items()) for each in maps]
