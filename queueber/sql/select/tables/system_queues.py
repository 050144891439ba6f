"""system.queues and .batches: the queues that the caller may read."""

import json
from collections.abc import AsyncIterator
from dataclasses import asdict
from typing import Any

from queueber.client import AsyncClient
from queueber.errors import NotFound, PermissionDenied
from queueber.limits import BATCHES_LIST_MAX, SECOND_MS
from queueber.model import Stats
from queueber.sql.select.needs import Need
from queueber.sql.select.tables.times import at, paused

Row = dict[str, Any]

_SAME = (
    "name", "ready", "delayed", "leased", "dead", "parked", "leases", "waiting_polls", "results",
    "result_bytes", "batches", "added_total", "polled_total", "completed_total", "removed_total",
    "failed_total", "released_total", "expired_total", "extended_total", "died_total",
    "redriven_total", "cancelled_total", "duplicates_total", "dead_dropped_total",
    "unclaimed_total",
)  # fmt: skip
GONE = (NotFound, PermissionDenied)
"""A queue that was deleted since the list was made, or that the caller may only list."""


async def queues(client: AsyncClient, need: Need) -> AsyncIterator[Row]:
    for stats in await seen(client, need, "name"):
        yield _queue_row(stats)


async def batches(client: AsyncClient, need: Need) -> AsyncIterator[Row]:
    for stats in await seen(client, need, "queue"):
        if not stats.batches:
            continue
        queue, before = client.queue(stats.name, must_exist=True), 0
        while True:
            try:
                page = await queue.batches(limit=BATCHES_LIST_MAX, before=before)
            except GONE:
                break
            for batch in page.batches:
                receipt = batch.receipt
                yield {
                    "queue": stats.name,
                    "number": batch.number,
                    "batch": receipt.batch,
                    "added": receipt.added,
                    "done": receipt.done,
                    "dead": receipt.dead,
                    "live": receipt.live,
                    "is_complete": receipt.complete,
                }
            if not (before := page.next):
                break


async def seen(client: AsyncClient, need: Need, column: str) -> list[Stats]:
    """The queues that rows can be about."""
    wanted = need.texts(column)
    return [each for each in await client.queues() if wanted is None or each.name in wanted]


def _queue_row(stats: Stats) -> Row:
    settings = stats.settings
    is_paused, until = paused(stats.paused_until_ms)
    return {
        **{name: getattr(stats, name) for name in _SAME},
        "bytes": stats.contents_bytes,
        "oldest_ready_seconds": stats.oldest_claimable_age_ms / SECOND_MS,
        "is_paused": is_paused,
        "paused_until": until,
        "lease_seconds": settings.lease_ms / SECOND_MS,
        "attempts_max": settings.attempts_max,
        "items_max": settings.items_max,
        "bytes_max": settings.bytes_max,
        "settings": json.dumps(asdict(settings)),
        "created_at": at(stats.created_at_ms),
    }
