"""SHOW: lists of topics, queues, groups, sources and system tables."""

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime

from queueber.client import AsyncClient
from queueber.errors import NotFound, PermissionDenied
from queueber.filters.like import Pattern
from queueber.limits import SECOND_MS
from queueber.model import GroupInfo, Stats, TopicInfo
from queueber.sql.bounds import Bounds
from queueber.sql.results import StatementResult, rows_of
from queueber.sql.statements import Show
from queueber.sql.system_tables import SYSTEM_TABLES

_TOGETHER = 32
"""Topics that are asked for at a time."""
_TOPICS_MAX = 1_000
"""Each is a call."""

_PREFIX = re.compile(r"[A-Za-z0-9./-]*")
"""How all names begin that a pattern matches: up to what stands for other characters, or is none
that names have."""

_TOPIC = (
    ("topic", "VARCHAR"), ("alias", "VARCHAR"), ("partitions", "INTEGER"), ("messages", "BIGINT"),
    ("bytes", "BIGINT"), ("groups", "INTEGER"), ("sources", "INTEGER"), ("closed", "BOOLEAN"),
)  # fmt: skip
_QUEUE = (
    ("queue", "VARCHAR"), ("ready", "BIGINT"), ("delayed", "BIGINT"), ("leased", "BIGINT"),
    ("dead", "BIGINT"), ("bytes", "BIGINT"), ("paused", "BOOLEAN"),
)  # fmt: skip
_GROUP = (
    ("group_id", "VARCHAR"), ("kind", "VARCHAR"), ("cursors", "VARCHAR"), ("lag", "BIGINT"),
    ("leased", "BIGINT"), ("dead", "BIGINT"), ("created_at", "TIMESTAMP WITH TIME ZONE"),
)  # fmt: skip
_SOURCE = (
    ("topic", "VARCHAR"), ("queue", "VARCHAR"), ("op", "VARCHAR"), ("payload_mode", "VARCHAR"),
    ("filter_expr", "VARCHAR"), ("partition_key_expr", "VARCHAR"),
)  # fmt: skip


async def show(client: AsyncClient, statement: Show, bounds: Bounds) -> StatementResult:
    is_wanted = _matching(statement.like)
    topics_max = min(_TOPICS_MAX, bounds.rows_max)
    match statement.listed:
        case "topics":
            prefix = _PREFIX.match(statement.like or "")[0]  # type: ignore[index]  # it may be empty
            infos = [each async for each in _topics(client, is_wanted, topics_max, prefix)]
            return rows_of(_TOPIC, [_topic_row(each) for each in infos])
        case "queues":
            queues = [each for each in await client.queues() if is_wanted(each.name)]
            return rows_of(_QUEUE, [_queue_row(each) for each in queues[: bounds.rows_max]])
        case "tables":
            rows = [(name,) for name in SYSTEM_TABLES if is_wanted(name)]
            return rows_of((("table_name", "VARCHAR"),), rows)
        case "groups":
            groups = await client.topic(statement.topic or "", must_exist=True).groups()
            return rows_of(_GROUP, [_group_row(each) for each in groups])
        case "sources":
            return await _sources(client, statement.topic, topics_max)


async def _sources(client: AsyncClient, topic: str | None, topics_max: int) -> StatementResult:
    if topic is None:
        infos = [each async for each in _topics(client, lambda _: True, topics_max)]
    else:
        infos = [await client.describe_topic(topic)]
    rows = [
        (
            info.name,
            each.queue,
            each.on.value,
            each.payload.value,
            each.where or None,
            each.partition_by or None,
        )
        for info in infos
        for each in info.sources
    ]
    return rows_of(_SOURCE, rows)


async def _topics(
    client: AsyncClient, is_wanted: Callable[[str], bool], topics_max: int, prefix: str = ""
) -> AsyncIterator[TopicInfo]:
    """Those that the caller may see, some asked for at a time."""
    names: list[str] = []
    async for name in client.topics(prefix):
        if is_wanted(name):
            names.append(name)
        if len(names) >= topics_max:
            break
    for begin in range(0, len(names), _TOGETHER):
        asked = [_described(client, name) for name in names[begin : begin + _TOGETHER]]
        for info in await asyncio.gather(*asked):
            if info is not None:
                yield info


async def _described(client: AsyncClient, name: str) -> TopicInfo | None:
    try:
        return await client.describe_topic(name)
    except (NotFound, PermissionDenied):  # deleted meanwhile; or its name is all that may be seen
        return None


def _matching(like: str | None) -> Callable[[str], bool]:
    if like is None:
        return lambda _: True
    pattern = Pattern(like)
    return lambda name: bool(pattern.matches(name))


def _topic_row(info: TopicInfo) -> tuple[object, ...]:
    return (
        info.name,
        info.config.alias or None,
        len(info.partitions),
        sum(each.next_offset - each.first_offset for each in info.partitions),
        sum(each.bytes for each in info.partitions),
        len(info.groups),
        len(info.sources),
        info.is_closed,
    )


def _queue_row(stats: Stats) -> tuple[object, ...]:
    return (
        stats.name,
        stats.ready,
        stats.delayed,
        stats.leased,
        stats.dead,
        stats.contents_bytes,
        stats.paused_until_ms > 0,
    )


def _group_row(info: GroupInfo) -> tuple[object, ...]:
    return (
        info.name,
        info.settings.kind.value,
        ",".join(map(str, info.cursors)),
        info.lag,
        info.leased,
        info.dead,
        datetime.fromtimestamp(info.created_at_ms / SECOND_MS, UTC),
    )
