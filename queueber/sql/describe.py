"""DESCRIBE: one topic, queue or system table, a line for each thing to know of it."""

from collections.abc import Iterable
from dataclasses import fields
from typing import Any

from queueber.client import AsyncClient
from queueber.errors import NotFound
from queueber.model import QueueSettings, Stats, TopicInfo
from queueber.sql import queries
from queueber.sql.bounds import Bounds
from queueber.sql.results import StatementResult, rows_of
from queueber.sql.statements import Describe, Select
from queueber.sql.system_tables import SYSTEM_TABLES

_COLUMN = (("column_name", "VARCHAR"), ("column_type", "VARCHAR"))
_PROPERTY = (("property", "VARCHAR"), ("value", "VARCHAR"))


async def describe(client: AsyncClient, statement: Describe, bounds: Bounds) -> StatementResult:
    name, kind = statement.name, statement.kind
    if kind == "table" or (kind is None and name.lower() in SYSTEM_TABLES):
        return await _table(client, name, bounds)
    if kind == "topic":
        return _topic(await client.describe_topic(name))
    if kind == "queue":
        return _queue(await client.queue(name, must_exist=True).stats())
    try:
        return _topic(await client.describe_topic(name))
    except NotFound:
        pass
    try:
        return _queue(await client.queue(name, must_exist=True).stats())
    except NotFound:
        raise NotFound(f"there is no topic, queue or system table named {name}") from None


async def _table(client: AsyncClient, name: str, bounds: Bounds) -> StatementResult:
    if name.lower() not in SYSTEM_TABLES:
        raise NotFound(f"table: there is none named {name}; SHOW TABLES lists them")
    empty = Select(f"SELECT * FROM {name.lower()} LIMIT 0")
    found = await queries.select(client, empty, (), bounds)
    return rows_of(_COLUMN, [(each.name, each.type) for each in found.columns])


def _topic(info: TopicInfo) -> StatementResult:
    config, settings = info.config, info.config.settings
    rows = [("topic", info.name), ("alias", config.alias), ("partitions", config.partitions)]
    rows += [("content_type", config.content_type), ("created_at_ms", info.created_at_ms)]
    rows += [(field.name, getattr(settings, field.name)) for field in fields(settings)]
    rows += [("closed", info.is_closed), ("parent", info.parent), ("forks", info.forks)]
    for at, each in enumerate(info.partitions):
        rows += [
            (f"partition {at}: first offset", each.first_offset),
            (f"partition {at}: next offset", each.next_offset),
            (f"partition {at}: bytes", each.bytes),
        ]
    rows += [("group", each) for each in info.groups]
    for source in info.sources:
        where = f" WHERE {source.where}" if source.where else ""
        rows.append(("source", f"{source.queue} ON {source.on.upper()}{where}"))
    return _properties(rows)


def _queue(stats: Stats) -> StatementResult:
    rows: list[tuple[str, Any]] = [("queue", stats.name)]
    for field in fields(stats):
        value = getattr(stats, field.name)
        if isinstance(value, QueueSettings):
            rows += [(each.name, getattr(value, each.name)) for each in fields(value)]
        elif field.name != "name":
            rows.append((field.name, value))
    return _properties(rows)


def _properties(rows: Iterable[tuple[str, Any]]) -> StatementResult:
    return rows_of(_PROPERTY, [(name, _shown(value)) for name, value in rows])


def _shown(value: object) -> str | None:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    return None if value == "" else str(value)
