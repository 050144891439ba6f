"""The tables of SELECT and their columns."""

import pyarrow as pa

from queueber.tables.messages import MESSAGES
from queueber.tables.pages import ITEMS, RESULTS, TEXT_LIST, TEXT_MAP, TIME

TEXT, JSON = "text", "json"
"""The body of a message, item or result as text, and as JSON; null if it is none."""


def _with_body(schema: pa.Schema, body: str) -> pa.Schema:
    at = schema.get_field_index(body) + 1
    for name in (JSON, TEXT):
        schema = schema.insert(at, pa.field(name, pa.string()))
    return schema


def _messages() -> pa.Schema:
    """As Spark has them, with the short name of the time that other systems use."""
    order = ("partition", "offset", "timestamp", "key", "payload", "attributes", "id", "sequence")
    fields = [MESSAGES.field(name) for name in order]
    renamed = [each.with_name("ts") if each.name == "timestamp" else each for each in fields]
    return _with_body(pa.schema(renamed), "payload")


_ITEMS = _with_body(ITEMS, "contents")

NAMED: dict[str, pa.Schema] = {
    "topic": _messages(),
    "queue": _ITEMS,
    "results": _with_body(RESULTS.insert(0, pa.field("offset", pa.int64())), "result"),
    "dead": _ITEMS,
}
"""Tables of one topic or queue: `topic('orders')`."""

SYSTEM: dict[str, pa.Schema] = {
    "system.topics": pa.schema(
        {
            "topic_id": pa.string(),
            "name": pa.string(),
            "alias": pa.string(),
            "partitions": pa.int32(),
            "retention_seconds": pa.int64(),
            "retention_max_bytes": pa.int64(),
            "retention_max_messages": pa.int64(),
            "routes": pa.string(),
            "sources": pa.string(),
            "messages": pa.int64(),
            "bytes": pa.int64(),
            "oldest_at": TIME,
            "last_at": TIME,
            "groups": TEXT_LIST,
            "content_type": pa.string(),
            "is_closed": pa.bool_(),
            "forks": pa.int32(),
            "parent": pa.string(),
            "expires_at": TIME,
            "created_at": TIME,
            "updated_at": TIME,
        }
    ),
    "system.topic_offsets": pa.schema(
        {
            "topic_id": pa.string(),
            "group_id": pa.string(),
            "partition_id": pa.int32(),
            "last_acked_offset": pa.int64(),
            "end_offset": pa.int64(),
            "lag": pa.int64(),
            "kind": pa.string(),
            "group_lag": pa.int64(),
            "group_lag_seconds": pa.float64(),
            "leased": pa.int64(),
            "dead": pa.int64(),
            "consumers": TEXT_LIST,
            "paused_until": TIME,
            "is_paused": pa.bool_(),
            "created_at": TIME,
            "updated_at": TIME,
        }
    ),
    "system.queues": pa.schema(
        {
            "name": pa.string(),
            "ready": pa.int64(),
            "delayed": pa.int64(),
            "leased": pa.int64(),
            "dead": pa.int64(),
            "parked": pa.int64(),
            "leases": pa.int64(),
            "bytes": pa.int64(),
            "oldest_ready_seconds": pa.float64(),
            "waiting_polls": pa.int64(),
            "is_paused": pa.bool_(),
            "paused_until": TIME,
            "results": pa.int64(),
            "result_bytes": pa.int64(),
            "batches": pa.int64(),
            "added_total": pa.int64(),
            "polled_total": pa.int64(),
            "completed_total": pa.int64(),
            "removed_total": pa.int64(),
            "failed_total": pa.int64(),
            "released_total": pa.int64(),
            "expired_total": pa.int64(),
            "extended_total": pa.int64(),
            "died_total": pa.int64(),
            "redriven_total": pa.int64(),
            "cancelled_total": pa.int64(),
            "duplicates_total": pa.int64(),
            "dead_dropped_total": pa.int64(),
            "unclaimed_total": pa.int64(),
            "lease_seconds": pa.float64(),
            "attempts_max": pa.int32(),
            "items_max": pa.int64(),
            "bytes_max": pa.int64(),
            "settings": pa.string(),
            "created_at": TIME,
        }
    ),
    "system.leases": pa.schema(
        {
            "queue": pa.string(),
            "topic": pa.string(),
            "group_id": pa.string(),
            "lease": pa.string(),
            "holder": pa.string(),
            "holder_name": pa.string(),
            "holder_host": pa.string(),
            "items": pa.int64(),
            "polled_at": TIME,
            "expires_at": TIME,
            "age_seconds": pa.float64(),
        }
    ),
    "system.batches": pa.schema(
        {
            "queue": pa.string(),
            "number": pa.int64(),
            "batch": pa.string(),
            "added": pa.int64(),
            "done": pa.int64(),
            "dead": pa.int64(),
            "live": pa.int64(),
            "is_complete": pa.bool_(),
        }
    ),
    "system.dead_letters": pa.schema(
        [*(pa.field(name, pa.string()) for name in ("queue", "topic", "group_id")), *_ITEMS]
    ),
}
"""Tables of the server: those rows that the caller may see."""

TABLES: dict[str, pa.Schema] = {**NAMED, **SYSTEM}

BODIES: dict[str, str] = {
    "topic": "payload",
    "queue": "contents",
    "results": "result",
    "dead": "contents",
    "system.dead_letters": "contents",
}
"""The column that `text` and `json` are made of."""

JSON_TEXTS = {"routes", "sources", "settings", JSON}
"""Columns that hold JSON: their type is that of the engine, which Arrow has not."""

_SQL_TYPES: dict[pa.DataType, str] = {
    pa.string(): "VARCHAR",
    pa.binary(): "BLOB",
    pa.bool_(): "BOOLEAN",
    pa.int32(): "INTEGER",
    pa.int64(): "BIGINT",
    pa.float64(): "DOUBLE",
    TIME: "TIMESTAMP WITH TIME ZONE",
    TEXT_MAP: "MAP(VARCHAR, VARCHAR)",
    TEXT_LIST: "VARCHAR[]",
}


def sql_type(field: pa.Field) -> str:
    return "JSON" if field.name in JSON_TEXTS else _SQL_TYPES[field.type]


def sent_columns(kind: str, wanted: tuple[str, ...]) -> list[str]:
    """The columns that come to the engine: without those that it makes of others."""
    made = {TEXT, JSON} & set(wanted) if kind in BODIES else set[str]()
    body = BODIES.get(kind)
    return [
        name
        for name in TABLES[kind].names
        if (name in wanted and name not in made) or (name == body and made)
    ]
