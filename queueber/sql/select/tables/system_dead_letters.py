"""system.dead_letters: those of queues, and those of the shared groups of topics."""

from collections.abc import AsyncIterator, Sequence
from typing import Any

import pyarrow as pa

from queueber.client import AsyncClient, AsyncQueue
from queueber.clock import SystemClock
from queueber.ids import split_reference
from queueber.limits import PEEK_ITEMS_MAX, SECOND_MS
from queueber.model import GroupKind, ItemInfo, ItemState
from queueber.sql.select.columns import SYSTEM, sent_columns
from queueber.sql.select.needs import Need
from queueber.sql.select.tables.items import Items
from queueber.sql.select.tables.system_queues import GONE, seen
from queueber.sql.select.tables.system_topics import groups_of, topic_names
from queueber.sql.select.tables.times import at

_OWNERS = ("queue", "topic", "group_id")
_COLUMNS = SYSTEM["system.dead_letters"]


async def dead_letters(client: AsyncClient, need: Need) -> AsyncIterator[pa.RecordBatch]:
    """Of each queue and group as it is when its turn comes.

    A condition on the queue or the batch leaves out those of groups, one on the topic those of
    queues.
    """
    names = sent_columns(need.kind, need.columns)
    if need.texts("topic") is None:
        async for batch in _of_queues(client, need, names):
            yield batch
    if need.texts("queue") is None and need.texts("batch") is None:
        async for batch in _of_groups(client, need, names):
            yield batch


async def _of_queues(
    client: AsyncClient, need: Need, names: Sequence[str]
) -> AsyncIterator[pa.RecordBatch]:
    of_items = [name for name in names if name not in _OWNERS]
    for stats in await seen(client, need, "queue"):
        if not stats.dead:
            continue
        try:
            snapshot = await client.queue(stats.name, must_exist=True).open_snapshot()
        except GONE:
            continue
        owner = {"queue": stats.name, "topic": None, "group_id": None}
        async with snapshot:
            async for batch in Items(snapshot, need).pages(of_items or ["priority"]):
                arrays = [
                    pa.repeat(pa.scalar(owner[name], pa.string()), batch.num_rows)
                    if name in _OWNERS
                    else batch.column(name)
                    for name in names
                ]
                yield pa.RecordBatch.from_arrays(arrays, names=list(names))


async def _of_groups(
    client: AsyncClient, need: Need, names: Sequence[str]
) -> AsyncIterator[pa.RecordBatch]:
    schema = pa.schema([_COLUMNS.field(name) for name in names])
    async for topic in topic_names(client, need, "topic"):
        for group in await groups_of(client, topic):
            if group.settings.kind is not GroupKind.SHARED or not group.dead:
                continue
            owner = {"queue": None, "topic": topic, "group_id": group.name}
            messages = client.topic(topic, must_exist=True).group(group.name)
            async for page in _pages(messages, need.rows):
                now_ms = SystemClock().now_ms()
                rows = [owner | _row(item, now_ms) for item in page]
                shown = [{name: row[name] for name in names} for row in rows]
                yield pa.RecordBatch.from_pylist(shown, schema)


async def _pages(queue: AsyncQueue, rows_max: int | None) -> AsyncIterator[list[ItemInfo]]:
    after, left = b"", rows_max
    while left is None or left > 0:
        limit = PEEK_ITEMS_MAX if left is None else min(left, PEEK_ITEMS_MAX)
        try:
            page = await queue.peek(ItemState.DEAD, limit=limit, after=after)
        except GONE:
            return
        if page.items:
            yield page.items
        left = None if left is None else left - len(page.items)
        if not (after := page.next):
            return


def _row(item: ItemInfo, now_ms: int) -> dict[str, Any]:
    """A message as the table of items has it: its offset is its row."""
    partition, offset = split_reference(item.id)
    return {
        "id": item.id.hex(),
        "key": item.key or None,
        "batch": None,
        "state": ItemState.DEAD.value,
        "contents": item.contents,
        "priority": item.priority,
        "attempts": item.attempts,
        "deliveries": item.deliveries,
        "added_at": at(item.added_at_ms),
        "at": at(item.at_ms),
        "age_seconds": max(0, now_ms - item.added_at_ms) / SECOND_MS,
        "lease": None,
        "reason": item.reason or None,
        "last_error": item.last_error or None,
        "partition": partition,
        "row": offset,
        "attributes": list(item.attributes.items()),
        "after": [],
        "after_batch": None,
    }
