"""What can be looked at: the server, all queues, a page of topics, one queue, one topic."""

import asyncio
import math
from collections.abc import Mapping
from typing import Any

import msgspec

from queueber.client import AsyncClient
from queueber.errors import NotFound, PermissionDenied
from queueber.gateway.dashboard.feeds import Look
from queueber.gateway.dashboard.health import Health, HealthWatch
from queueber.gateway.dashboard.rows import QueueRow, TopicRow, queue_row, topic_row
from queueber.model import BatchInfo, GroupInfo, LeaseInfo
from queueber.rates import Rates

TOPICS_SHOWN = 50
LISTED = 50
"""Leases and batches of a queue that are shown live; the API has the others."""
_HEALTH_SECONDS = 3.0


class Value(msgspec.Struct, array_like=True, frozen=True):
    """A row with a name and anything: the API's own words for it."""

    name: str
    value: Any


def queues(client: AsyncClient) -> Look:
    rates, loop = Rates(), asyncio.get_running_loop()

    async def look() -> Mapping[str, QueueRow]:
        found = await client.queues()
        rates.keep({stats.name for stats in found})
        return {stats.name: queue_row(stats, rates, loop.time()) for stats in found}

    return look


def topics(client: AsyncClient, prefix: str, after: str) -> Look:
    rates = Rates()

    async def look() -> Mapping[str, TopicRow]:
        names = await _topic_names(client, prefix, after)
        rates.keep(set(names))
        found = await asyncio.gather(*(_topic(client, name, rates) for name in names))
        return {row.name: row for row in found if row is not None}

    return look


async def _topic_names(client: AsyncClient, prefix: str, after: str) -> list[str]:
    names: list[str] = []
    async for name in client.topics(prefix, after=after):
        names.append(name)
        if len(names) == TOPICS_SHOWN:
            break
    return names


async def _topic(client: AsyncClient, name: str, rates: Rates) -> TopicRow | None:
    topic = client.topic(name, must_exist=True)
    try:
        info, groups = await asyncio.gather(topic.describe(), topic.groups())
    except (NotFound, PermissionDenied):
        return None  # deleted in this moment, or not for this caller
    return topic_row(info, groups, rates, asyncio.get_running_loop().time())


def queue(client: AsyncClient, name: str) -> Look:
    rates = Rates()
    loop = asyncio.get_running_loop()

    async def look() -> Mapping[str, Value]:
        of = client.queue(name, must_exist=True)
        stats, leases, batches = await asyncio.gather(
            of.stats(), of.leases(limit=LISTED), of.batches(limit=LISTED)
        )
        row = queue_row(stats, rates, loop.time())
        return _values(
            stats=stats,
            rates={name: getattr(row, name) for name in row.__struct_fields__[-5:]},
            leases={
                "leases": [_lease(each) for each in leases.leases],
                "more": bool(leases.next),
            },
            batches={
                "batches": [_batch(each) for each in batches.batches],
                "more": bool(batches.next),
            },
        )

    return look


def topic(client: AsyncClient, name: str) -> Look:
    rates = Rates()
    loop = asyncio.get_running_loop()

    async def look() -> Mapping[str, Value]:
        of = client.topic(name, must_exist=True)
        info, groups = await asyncio.gather(of.describe(), of.groups())
        row = topic_row(info, groups, rates, loop.time())
        return _values(
            topic=info,
            numbers={name: getattr(row, name) for name in row.__struct_fields__},
            groups={"groups": [_group(each) for each in groups]},
        )

    return look


def server(client: AsyncClient) -> Look:
    """The server itself, and how it is. Its measures are asked for every few seconds."""
    watch, loop = HealthWatch(), asyncio.get_running_loop()
    health: Health | None = None
    next_at = 0.0

    async def look() -> Mapping[str, Value]:
        nonlocal health, next_at
        info = await client.server()
        if loop.time() >= next_at:
            next_at = loop.time() + _HEALTH_SECONDS
            try:
                health = watch.look(await client.metrics(), loop.time())
            except PermissionDenied:
                next_at = math.inf  # not for this caller
        return _values(server=info, health=health)

    return look


def _values(**values: object) -> dict[str, Value]:
    return {
        name: Value(name, msgspec.to_builtins(value, enc_hook=_plain))
        for name, value in values.items()
    }


def _plain(value: object) -> object:
    raise TypeError(f"{type(value).__name__} has no form in JSON")


def _lease(lease: LeaseInfo) -> dict[str, object]:
    return {
        "lease": lease.lease_id.hex(),
        "holder": lease.holder,
        "items": lease.items,
        "expires_at_ms": lease.expires_at_ms,
        "polled_at_ms": lease.polled_at_ms,
    }


def _batch(batch: BatchInfo) -> dict[str, object]:
    receipt = batch.receipt
    return {
        "number": batch.number,
        "batch": receipt.batch,
        "added": receipt.added,
        "done": receipt.done,
        "dead": receipt.dead,
        "live": receipt.live,
        "complete": receipt.complete,
        "added_digest": receipt.added_digest.hex(),
        "done_digest": receipt.done_digest.hex(),
        "dead_digest": receipt.dead_digest.hex(),
    }


def _group(group: GroupInfo) -> dict[str, object]:
    return {
        "name": group.name,
        "kind": group.settings.kind.value,
        "queue": group.settings.queue,
        "paused_until_ms": group.paused_until_ms,
        "cursors": list(group.cursors),
        "lag": group.lag,
        "lag_ms": group.lag_ms,
        "leased": group.leased,
        "dead": group.dead,
        "consumers": list(group.consumers),
    }
