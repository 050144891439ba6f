"""Schemas of a topic: versions of a document, each in force from an offset on.

The engine keeps documents and does not read them. It holds publishers to the version in force: a
publication names the version that its messages were checked against, and is refused if it is
another one (`conditions.py`). A new version, the offset from which on it holds and the version in
force are written in one transaction, so the messages between two of these offsets were all checked
against the same document.
"""

from dataclasses import replace
from typing import Any

from queueber.db.families import Family
from queueber.db.records.schemas import (
    decode_schema_head,
    document_key,
    encode_schema_head,
    heads_range,
    schema_key,
    split_schema_key,
)
from queueber.db.store.contract import Reads
from queueber.engine.kernel.transaction import Transaction
from queueber.engine.topics.conditions import check_number, check_without_sources
from queueber.engine.topics.topic_state import TopicState
from queueber.errors import (
    FailedPrecondition,
    InvalidArgument,
    NotFound,
    ResourceExhausted,
)
from queueber.limits import SCHEMAS_MAX
from queueber.model import TopicSchema, TopicSettings


def set_schema(
    tx: Transaction[Any],
    topic: TopicState,
    document: bytes,
    *,
    expected_version: int | None = None,
    expected_offset: int | None = None,
    topic_number: int = 0,
) -> TopicSchema:
    """Put the next version in force, for all messages that are published after this."""
    record = topic.record_in(tx)
    version = record.settings.schema_version
    if len(record.logs) != 1:
        raise InvalidArgument(
            f"schema: topic {topic.name!r} has {len(record.logs)} partitions; a schema holds from "
            "an offset on, so only a topic of one partition can have one"
        )
    check_number(topic, topic_number)
    tail = topic.log(0).head_in(tx).next_offset
    if record.is_closed:
        raise FailedPrecondition(
            f"topic {topic.name!r} is closed, and takes no more messages", tail=tail, closed=1
        )
    check_without_sources(topic, record, "have a schema")
    if expected_version not in (None, version):
        raise FailedPrecondition(
            f"expected_version is {expected_version}, but topic {topic.name!r} has schema version "
            f"{version}",
            schema_version=version,
        )
    if expected_offset not in (None, tail):
        raise FailedPrecondition(
            f"expected_offset is {expected_offset}, but topic {topic.name!r} goes on at {tail}",
            tail=tail,
        )
    if version >= SCHEMAS_MAX:
        raise ResourceExhausted(
            f"schema: topic {topic.name!r} has had {version} versions; the limit is {SCHEMAS_MAX}"
        )
    schema = TopicSchema(version + 1, tail, tx.now_ms, document, topic.queue_id)
    _put(tx, topic, schema)
    topic.change(tx, settings=replace(record.settings, schema_version=schema.version))
    return schema


def put_first(tx: Transaction[Any], topic: TopicState, document: bytes) -> None:
    """The schema that a new topic has from its first message on."""
    _put(tx, topic, TopicSchema(1, 0, tx.now_ms, document))


def _put(tx: Transaction[Any], topic: TopicState, schema: TopicSchema) -> None:
    put, version = tx.batch.put, schema.version
    put(Family.SCHEMAS, schema_key(topic.prefix, version), encode_schema_head(schema))
    put(Family.SCHEMAS, document_key(topic.prefix, version), schema.document)


def find_schema(reads: Reads, topic: TopicState, version: int) -> TopicSchema:
    """A version of the schema; 0 is the one in force."""
    version = version or topic.settings.schema_version
    keys = [schema_key(topic.prefix, version), document_key(topic.prefix, version)]
    head, document = reads.get_many(Family.SCHEMAS, keys)
    if head is None or document is None:
        raise NotFound(
            f"schema: topic {topic.name!r} has no version {version}"
            if version
            else f"schema: topic {topic.name!r} has none"
        )
    return replace(
        decode_schema_head(version, head), document=document, topic_number=topic.queue_id
    )


def list_schemas(reads: Reads, topic: TopicState) -> list[TopicSchema]:
    """All versions in order, without their documents."""
    entries = reads.scan(Family.SCHEMAS, *heads_range(topic.prefix), SCHEMAS_MAX)
    return [decode_schema_head(split_schema_key(key), value) for key, value in entries]


def check_configured(
    reads: Reads, topic: TopicState, settings: TopicSettings, partitions: int
) -> None:
    """Refuse settings that would make the offsets of schemas wrong, or refuse events.

    The version in force never goes back: whoever read the settings before another version was set,
    and writes them all, would undo that.
    """
    if settings.refuses_when_full:
        check_without_sources(topic, topic.record, "refuse messages when it is full")
    if settings.schema_version:
        check_without_sources(topic, topic.record, "have a schema")
    version = topic.settings.schema_version
    if settings.schema_version < version:
        raise FailedPrecondition(
            f"schema_version is {settings.schema_version}, but topic {topic.name!r} has version "
            f"{version}, and versions only grow; read the settings again",
            schema_version=version,
        )
    if partitions > topic.partitions and list_schemas(reads, topic):
        raise InvalidArgument(
            f"partitions: topic {topic.name!r} has a schema, which holds from an offset on; it "
            "keeps its one partition"
        )
