"""Statements that create, change and delete topics, and their sources."""

from queueber.client import AsyncClient
from queueber.errors import AlreadyExists, NotFound
from queueber.sql import statements as made
from queueber.sql.bounds import Bounds
from queueber.sql.results import StatementResult, message_of


async def create(client: AsyncClient, statement: made.CreateTopic, _: Bounds) -> StatementResult:
    name, settings = statement.topic, dict(statement.settings)
    if statement.partitions is not None:
        settings["partitions"] = statement.partitions
    try:
        is_new = await client.create_topic(name, **settings) is not None
    except AlreadyExists:
        if not statement.may_exist:
            raise
        return message_of(f"topic {name} exists; its settings were not changed")
    if not is_new and not statement.may_exist:
        raise AlreadyExists(f"topic: {name} exists; write IF NOT EXISTS if that is all right")
    return message_of(f"topic {name} created" if is_new else f"topic {name} exists", int(is_new))


async def drop(client: AsyncClient, statement: made.DropTopic, _: Bounds) -> StatementResult:
    name = statement.topic
    if await client.delete_topic(name):
        return message_of(f"topic {name} dropped", 1)
    if not statement.may_lack:
        raise NotFound(f"topic: there is none named {name}")
    return message_of(f"there is no topic {name}")


async def clear(client: AsyncClient, statement: made.ClearTopic, _: Bounds) -> StatementResult:
    name = statement.topic
    deleted = await client.topic(name, must_exist=True).trim(start="latest")
    return message_of(f"topic {name} cleared: {deleted} messages deleted", deleted)


async def change(client: AsyncClient, statement: made.SetTopic, _: Bounds) -> StatementResult:
    await client.configure_topic(statement.topic, **statement.settings)
    return message_of(f"topic {statement.topic} changed", 1)


async def clear_retention(
    client: AsyncClient, statement: made.ClearRetention, _: Bounds
) -> StatementResult:
    await client.configure_topic(
        statement.topic, retention=0, retention_bytes=0, retention_messages=0
    )
    return message_of(f"topic {statement.topic} keeps its messages for good", 1)


async def add_source(client: AsyncClient, statement: made.AddSource, _: Bounds) -> StatementResult:
    is_new = await client.topic(statement.topic, must_exist=True).add_source(
        statement.queue,
        on=statement.on,
        where=statement.where,
        partition_by=statement.partition_by,
        payload=statement.payload,
    )
    what = f"source {statement.queue} on {statement.on.upper()}"
    if not is_new:
        raise AlreadyExists(f"topic {statement.topic} has {what} already")
    return message_of(f"topic {statement.topic}: {what} added", 1)


async def drop_source(
    client: AsyncClient, statement: made.DropSource, _: Bounds
) -> StatementResult:
    topic = client.topic(statement.topic, must_exist=True)
    dropped = await topic.drop_source(statement.queue, on=statement.on)
    on = "" if statement.on is None else f" on {statement.on.upper()}"
    if not dropped:
        raise NotFound(f"topic {statement.topic} has no source {statement.queue}{on}")
    return message_of(f"topic {statement.topic}: source {statement.queue}{on} dropped", dropped)


async def create_namespace(
    _: AsyncClient, statement: made.CreateNamespace, __: Bounds
) -> StatementResult:
    return message_of(
        f"nothing to do: there are no namespaces, and {statement.name}.orders is a name like others"
    )
