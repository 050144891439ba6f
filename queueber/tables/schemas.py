"""The columns of the tables, and which columns the server must send for them."""

from collections.abc import Collection

import pyarrow as pa

from queueber.model import Column

TIME = pa.timestamp("us", tz="UTC")
TEXT_MAP = pa.map_(pa.string(), pa.string())

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
        "added_at": TIME,
        "at": TIME,
        "age_seconds": pa.float64(),
        "lease": pa.string(),
        "reason": pa.string(),
        "last_error": pa.string(),
        "partition": pa.int32(),
        "row": pa.int64(),
        "attributes": TEXT_MAP,
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
