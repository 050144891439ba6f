"""Statements about consumer groups: what they read, and how far they are."""

from dataclasses import replace

from queueber import consuming
from queueber.client import AsyncClient, Message
from queueber.consuming.consume import release
from queueber.errors import NotFound
from queueber.sql import statements as made
from queueber.sql.bounds import Bounds
from queueber.sql.held import Held
from queueber.sql.results import StatementResult, message_of, rows_of, size_of

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


_USER = "queueber.user"
_OP = "queueber.op"


async def consume(
    client: AsyncClient, statement: made.Consume, bounds: Bounds, held: Held
) -> StatementResult:
    """As many messages as the answer has room for, and one at least; no others stay leased."""
    topic, group = statement.topic, statement.group
    found = await consuming.consume(
        client,
        topic,
        group,
        consuming.Start(statement.start),
        min(statement.limit, bounds.rows_max),
        partition=statement.partition,
        lease_s=bounds.lease_seconds,
    )
    if group is not None:
        held.add(topic, group, found)
    rows: list[tuple[object, ...]] = []
    left = bounds.answer_bytes_max
    for message in found.messages:
        row = _consumed_row(topic, message)
        left -= size_of(row)
        if left < 0 and rows:
            break
        rows.append(row)
    unseen = found.messages[len(rows) :]
    if unseen and group is not None:
        await release(client, topic, group, replace(found, messages=unseen))
    return rows_of(_CONSUMED, rows)


def _consumed_row(topic: str, message: Message) -> tuple[object, ...]:
    return (
        topic,
        message.partition,
        message.offset,
        message.key or None,
        message.payload,
        message.timestamp_ms,
        message.attributes.get(_USER) or None,
        message.attributes.get(_OP, "insert"),
    )


async def ack(client: AsyncClient, statement: made.Ack, bounds: Bounds) -> StatementResult:
    committed = await consuming.acknowledge(
        client,
        statement.topic,
        statement.group,
        statement.upto_offset,
        statement.partition,
        lease_s=bounds.lease_seconds,
    )
    row = (statement.topic, statement.group, statement.partition, committed)
    return rows_of(_ACKED, [row])


async def reset(client: AsyncClient, statement: made.ResetGroup, bounds: Bounds) -> StatementResult:
    """An offset is one of a partition, the first if none is named; an end is that of all."""
    to, partition = statement.to, statement.partition
    if partition is None and isinstance(to, int):
        partition = 0
    topic, group, start = statement.topic, statement.group, consuming.Start(to)
    await consuming.reset(client, topic, group, start, partition, lease_s=bounds.lease_seconds)
    where = "" if partition is None else f", partition {partition},"
    place = f"offset {to}" if isinstance(to, int) else f"the {to} message"
    return message_of(f"group {group} of {topic}{where} goes on at {place}", 1)


async def drop(client: AsyncClient, statement: made.DropGroup, _: Bounds) -> StatementResult:
    name, topic = statement.group, statement.topic
    if await client.topic(topic, must_exist=True).delete_group(name):
        return message_of(f"group {name} of {topic} dropped", 1)
    if not statement.may_lack:
        raise NotFound(f"group: {topic} has none named {name}")
    return message_of(f"{topic} has no group {name}")
