"""system.topics and system.topic_offsets: the topics that the caller may read."""

import json
from collections.abc import AsyncIterator
from typing import Any

from queueber.client import AsyncClient
from queueber.errors import NotFound, PermissionDenied
from queueber.limits import SECOND_MS
from queueber.model import GroupInfo, Source, TopicInfo
from queueber.sql.select.needs import Need
from queueber.sql.select.tables.times import at, paused

Row = dict[str, Any]


async def topics(client: AsyncClient, need: Need) -> AsyncIterator[Row]:
    async for name in topic_names(client, need, "name", "topic_id"):
        info = await _described(client, name)
        if info is not None:
            yield _topic_row(info)


async def topic_offsets(client: AsyncClient, need: Need) -> AsyncIterator[Row]:
    async for name in topic_names(client, need, "topic_id"):
        info = await _described(client, name)
        if info is None or not info.groups:
            continue
        for group in await groups_of(client, name):
            for row in _offset_rows(info, group):
                yield row


async def topic_names(client: AsyncClient, need: Need, *columns: str) -> AsyncIterator[str]:
    """The topics that rows can be about."""
    for column in columns:
        wanted = need.texts(column)
        if wanted is not None:
            for name in sorted(wanted):
                yield name
            return
    async for name in client.topics():
        yield name


async def groups_of(client: AsyncClient, name: str) -> list[GroupInfo]:
    """Those of a topic; none if it is gone, or the caller may only list it."""
    try:
        return await client.topic(name, must_exist=True).groups()
    except (NotFound, PermissionDenied):
        return []


async def _described(client: AsyncClient, name: str) -> TopicInfo | None:
    """None if there is none of that very name that the caller may read."""
    try:
        info = await client.describe_topic(name)
    except (NotFound, PermissionDenied, ValueError):
        return None
    return None if info.is_deleted or info.name != name else info


def _topic_row(info: TopicInfo) -> Row:
    settings, parts = info.config.settings, info.partitions
    oldest = [each.oldest_ms for each in parts if each.oldest_ms]
    return {
        "topic_id": info.name,
        "name": info.name,
        "alias": info.config.alias or None,
        "partitions": len(parts),
        "retention_seconds": _or_none(settings.retention_ms // SECOND_MS),
        "retention_max_bytes": _or_none(settings.retention_bytes),
        "retention_max_messages": _or_none(settings.retention_messages),
        "routes": json.dumps([_route(each) for each in info.sources]),
        "sources": json.dumps([_source(each) for each in info.sources]),
        "messages": sum(each.next_offset - each.first_offset for each in parts),
        "bytes": sum(each.bytes for each in parts),
        "oldest_at": at(min(oldest, default=0)),
        "last_at": at(max((each.last_ms for each in parts), default=0)),
        "groups": list(info.groups),
        "content_type": info.config.content_type or None,
        "is_closed": info.is_closed,
        "forks": info.forks,
        "parent": info.parent or None,
        "expires_at": at(info.expires_at_ms),
        "created_at": at(info.created_at_ms),
        "updated_at": at(info.updated_at_ms or info.created_at_ms),
    }


def _source(source: Source) -> Row:
    return {
        "queue": source.queue,
        "on": source.on.value,
        "where": source.where,
        "partition_by": source.partition_by,
        "payload": source.payload.value,
    }


def _route(source: Source) -> Row:
    """The same in the words of KalamDB."""
    return {
        "table_id": source.queue,
        "op": source.on.value.capitalize(),
        "payload_mode": source.payload.value.capitalize(),
        "filter_expr": source.where or None,
        "partition_key_expr": source.partition_by or None,
    }


def _offset_rows(info: TopicInfo, group: GroupInfo) -> list[Row]:
    is_paused, until = paused(group.paused_until_ms)
    of_group = {
        "topic_id": info.name,
        "group_id": group.name,
        "kind": group.settings.kind.value,
        "group_lag": group.lag,
        "group_lag_seconds": group.lag_ms / SECOND_MS,
        "leased": group.leased,
        "dead": group.dead,
        "consumers": list(group.consumers),
        "is_paused": is_paused,
        "paused_until": until,
        "created_at": at(group.created_at_ms),
        "updated_at": None,
    }
    return [
        {
            **of_group,
            "partition_id": partition,
            "last_acked_offset": cursor - 1 if cursor else None,
            "end_offset": reach.next_offset,
            "lag": max(0, reach.next_offset - max(cursor, reach.first_offset)),
        }
        for partition, (cursor, reach) in enumerate(
            zip(group.cursors, info.partitions, strict=False)
        )
    ]


def _or_none(value: int) -> int | None:
    return value or None
