"""system.leases: those of queues, and those of the shared groups of topics."""

import re
from collections.abc import AsyncIterator
from typing import Any

from queueber.client import AsyncClient, AsyncQueue
from queueber.clock import SystemClock
from queueber.limits import LEASES_LIST_MAX, SECOND_MS
from queueber.model import GroupKind
from queueber.sql.select.needs import Need
from queueber.sql.select.tables.system_queues import GONE, seen
from queueber.sql.select.tables.system_topics import groups_of, topic_names
from queueber.sql.select.tables.times import at

Row = dict[str, Any]

_HOLDER = re.compile(r"(?P<name>.*) \((?P<address>[^()]*)\)")


async def leases(client: AsyncClient, need: Need) -> AsyncIterator[Row]:
    """A condition on the queue leaves out the leases of groups, and the other way round."""
    if need.texts("topic") is None:
        for stats in await seen(client, need, "queue"):
            if stats.leases:
                of_queue = {"queue": stats.name, "topic": None, "group_id": None}
                async for row in _leases(client.queue(stats.name, must_exist=True)):
                    yield of_queue | row
    if need.texts("queue") is not None:
        return
    async for name in topic_names(client, need, "topic"):
        for group in await groups_of(client, name):
            if group.settings.kind is GroupKind.SHARED and group.leased:
                of_group = {"queue": None, "topic": name, "group_id": group.name}
                async for row in _leases(client.topic(name, must_exist=True).group(group.name)):
                    yield of_group | row


async def _leases(queue: AsyncQueue) -> AsyncIterator[Row]:
    after = b""
    while True:
        try:
            page = await queue.leases(limit=LEASES_LIST_MAX, after=after)
        except GONE:
            return
        now_ms = SystemClock().now_ms()
        for lease in page.leases:
            name, host = _holder(lease.holder)
            yield {
                "lease": lease.lease_id.hex(),
                "holder": lease.holder or None,
                "holder_name": name,
                "holder_host": host,
                "items": lease.items,
                "polled_at": at(lease.polled_at_ms),
                "expires_at": at(lease.expires_at_ms),
                "age_seconds": max(0, now_ms - lease.polled_at_ms) / SECOND_MS,
            }
        if not (after := page.next):
            return


def _holder(holder: str) -> tuple[str | None, str | None]:
    """The name and the host of a holder such as `worker-1 (10.0.0.5:51234)`."""
    match = _HOLDER.fullmatch(holder)
    name, address = (match["name"], match["address"]) if match else ("", holder)
    return name or None, address.rpartition(":")[0] or None
