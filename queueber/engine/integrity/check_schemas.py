"""The schemas of a topic: the check that they agree with its record and log, and their repair."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from queueber.db.families import Family
from queueber.db.records.keys import prefix_end, queue_prefix
from queueber.db.records.log import LogHead
from queueber.db.records.schemas import (
    decode_schema_head,
    document_key,
    encode_schema_head,
    is_head_key,
    schema_key,
    split_schema_key,
)
from queueber.db.records.topics import TopicRecord
from queueber.db.store.contract import Store
from queueber.model import TopicSchema

_HEAD_BYTES = len(encode_schema_head(TopicSchema(1, 0, 0)))


def check_schemas(
    store: Store, number: int, record: TopicRecord, heads: Sequence[LogHead]
) -> Iterator[str]:
    """Sentences about what is wrong; nothing is checked of a topic that is being dropped."""
    prefix, floor = queue_prefix(number), 0
    if record.is_deleted and not record.forks:
        return
    for key, value in store.walk(Family.SCHEMAS, prefix, prefix_end(prefix)):
        version = split_schema_key(key)
        if not 1 <= version <= record.settings.schema_version:
            yield f"schema {version} is there, but {record.settings.schema_version} is in force"
        if not is_head_key(key):
            if store.get(Family.SCHEMAS, schema_key(prefix, version)) is None:
                yield f"schema {version} has a document and no offset"
            continue
        if store.get(Family.SCHEMAS, document_key(prefix, version)) is None:
            yield f"schema {version} has no document"
        schema = decode_schema_head(version, value)
        end = heads[0].next_offset if len(heads) == 1 else 0
        if not floor <= schema.from_offset <= end:
            yield f"schema {version} holds from {schema.from_offset}, not in {floor} to {end}"
        floor = max(floor, schema.from_offset)


def rebuild_schemas(store: Store, number: int, record: TopicRecord, end: int) -> TopicRecord:
    """Delete what is half there, and move offsets into the log, which ends at `end`.

    The record's version becomes that of the last schema if it is lower, so no message comes in
    unchecked.
    """
    prefix, batch, kept, floor = queue_prefix(number), store.batch(), 0, 0
    for key, _ in store.walk(Family.SCHEMAS, prefix, prefix_end(prefix)):
        version = split_schema_key(key)
        head = store.get(Family.SCHEMAS, schema_key(prefix, version)) or b""
        document = store.get(Family.SCHEMAS, document_key(prefix, version))
        if len(head) != _HEAD_BYTES or document is None or not version:
            batch.delete(Family.SCHEMAS, key)
        elif is_head_key(key):
            schema = decode_schema_head(version, head)
            kept, floor = version, min(max(floor, schema.from_offset), end)
            batch.put(Family.SCHEMAS, key, encode_schema_head(replace(schema, from_offset=floor)))
    store.write(batch)
    version = max(record.settings.schema_version, kept)
    return record._replace(settings=replace(record.settings, schema_version=version))
