"""Statements about consumer groups: what they read, and how far they are."""

from queueber import consuming
from queueber.client import AsyncClient
from queueber.errors import NotFound
from queueber.sql import statements as made
from queueber.sql.bounds import Bounds
from queueber.sql.results import StatementResult, message_of, rows_of

_CONSUMED = (
    ("topic_id", "VARCHAR"),
    ("partition_id", "INTEGER"),
    ("offset", "BIGINT"),
    ("key", "VARCHAR"),
    ("payload", "BLOB"),
    ("timestamp_ms", "BIGINT"),
    ("user_id", "VARCHAR"),
    ("op", "VARCHAR"),
)
_ACKED = (
    ("topic", "VARCHAR"),
    ("group_id", "VARCHAR"),
    ("partition", "INTEGER"),
    ("committed_offset", "BIGINT"),
)


async def consume(client: AsyncClient, statement: made.Consume, bounds: Bounds) -> StatementResult:
    limit = min(statement.limit, bounds.rows_max)
    found = await consuming.consume(
        client,
        statement.topic,
        statement.group,
        consuming.Start(statement.start),
        limit,
        partition=statement.partition,
        lease_s=bounds.lease_seconds,
    )
    rows = [
        (
            statement.topic,
            each.partition,
            each.offset,
            each.key or None,
            each.payload,
            each.timestamp_ms,
            None,
            each.attributes.get("queueber.op", "insert"),
        )
        for each in found.messages
    ]
    return rows_of(_CONSUMED, rows)


async def ack(client: AsyncClient, statement: made.Ack, _: Bounds) -> StatementResult:
    committed = await consuming.acknowledge(
        client,
        statement.topic,
        statement.group,
        statement.upto_offset,
        partition=statement.partition,
    )
    row = (statement.topic, statement.group, statement.partition, committed)
    return rows_of(_ACKED, [row])


async def reset(client: AsyncClient, statement: made.ResetGroup, _: Bounds) -> StatementResult:
    """An offset is one of a partition, the first if none is named; an end is that of all."""
    to, partition = statement.to, statement.partition
    if partition is None and isinstance(to, int):
        partition = 0
    topic = client.topic(statement.topic, must_exist=True)
    await topic.reset(statement.group, partition=partition, start=to)
    where = "" if partition is None else f", partition {partition},"
    place = f"offset {to}" if isinstance(to, int) else f"the {to} message"
    return message_of(f"group {statement.group} of {statement.topic}{where} goes on at {place}", 1)


async def drop(client: AsyncClient, statement: made.DropGroup, _: Bounds) -> StatementResult:
    name, topic = statement.group, statement.topic
    if await client.topic(topic, must_exist=True).delete_group(name):
        return message_of(f"group {name} of {topic} dropped", 1)
    if not statement.may_lack:
        raise NotFound(f"group: {topic} has none named {name}")
    return message_of(f"{topic} has no group {name}")
