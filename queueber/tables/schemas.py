"""The columns of the tables, and what the server has to send for them."""

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
"""What became of items: those that are done, and dead letters."""

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
    """What the server need not send to someone who reads the columns of these names only."""
    return [column for name, column in _SENT_ON_DEMAND.items() if name not in names]
