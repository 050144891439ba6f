"""All tables of one statement: fixed together at its start, then read one after the other.

A queue is read from one snapshot, whichever of its tables are asked for. A topic is read up to
where it ended at the start; messages never change. Between two queues or topics lie the
milliseconds of a few calls.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any, TypeVar

import pyarrow as pa

from queueber.client import AsyncClient, AsyncSnapshot
from queueber.errors import NotFound, PermissionDenied, QueueberError
from queueber.model import TopicInfo
from queueber.sql.select.columns import TABLES, sent_columns
from queueber.sql.select.needs import Need
from queueber.sql.select.tables import system_leases, system_queues, system_topics
from queueber.sql.select.tables.budget import Budget
from queueber.sql.select.tables.items import Items, Results
from queueber.sql.select.tables.messages import Messages
from queueber.sql.select.tables.system_dead_letters import dead_letters

T = TypeVar("T")

_ROWS_TOGETHER = 500
_SYSTEM: dict[str, Callable[[AsyncClient, Need], AsyncIterator[dict[str, Any]]]] = {
    "system.topics": system_topics.topics,
    "system.topic_offsets": system_topics.topic_offsets,
    "system.queues": system_queues.queues,
    "system.leases": system_leases.leases,
    "system.batches": system_queues.batches,
}


class Sources:
    def __init__(self, client: AsyncClient, budget: Budget) -> None:
        self._client = client
        self._budget = budget
        self._snapshots: dict[str, AsyncSnapshot] = {}
        self._topics: dict[str, TopicInfo] = {}

    async def open(self, needs: Sequence[Need]) -> None:
        """Fix the moment. `NotFound` for what is not there, or not for this caller."""
        for need in needs:
            name = need.subject
            if need.kind == "topic" and name not in self._topics:
                info = await _found("topic", name, self._client.describe_topic(name))
                if info.is_deleted:
                    raise _not_found("topic", name)
                self._topics[name] = info
            elif need.kind in {"queue", "dead", "results"} and name not in self._snapshots:
                opened = self._client.queue(name, must_exist=True).open_snapshot()
                self._snapshots[name] = await _found("queue", name, opened)

    async def aclose(self) -> None:
        for snapshot in self._snapshots.values():
            with suppress(QueueberError):  # the server drops what nobody reads
                await snapshot.aclose()

    async def batches(self, need: Need) -> AsyncIterator[pa.RecordBatch]:
        """The rows of a table, within the budget."""
        async for batch in self._batches(need):
            self._budget.take(batch, need.kind, need.subject)
            yield batch

    async def _batches(self, need: Need) -> AsyncIterator[pa.RecordBatch]:
        match need.kind:
            case "topic":
                topic = self._client.topic(need.subject, must_exist=True)
                messages = Messages(topic, self._topics[need.subject], need)
                stretches = await messages.stretches()
                self._expect(need, messages.rows_at_least(stretches))
                pages = messages.pages(stretches)
            case "queue" | "dead":
                items = Items(self._snapshots[need.subject], need)
                self._expect(need, items.rows_at_least())
                pages = items.pages()
            case "results":
                results = Results(self._snapshots[need.subject], need)
                self._expect(need, results.rows_at_least())
                pages = results.pages()
            case "system.dead_letters":
                pages = dead_letters(self._client, need)
            case _:
                pages = _in_batches(need, _SYSTEM[need.kind](self._client, need))
        async for batch in pages:
            yield batch

    def _expect(self, need: Need, rows: int) -> None:
        self._budget.expect(rows, need.kind, need.subject)


async def _in_batches(
    need: Need, rows: AsyncIterator[dict[str, Any]]
) -> AsyncIterator[pa.RecordBatch]:
    names = sent_columns(need.kind, need.columns)
    schema = pa.schema([TABLES[need.kind].field(name) for name in names])
    gathered: list[dict[str, Any]] = []
    left = need.rows
    async for row in rows:
        if left is not None and left <= 0:
            break
        gathered.append({name: row[name] for name in names})
        left = None if left is None else left - 1
        if len(gathered) == _ROWS_TOGETHER:
            yield pa.RecordBatch.from_pylist(gathered, schema)
            gathered = []
    if gathered:
        yield pa.RecordBatch.from_pylist(gathered, schema)


async def _found(kind: str, name: str, found: Awaitable[T]) -> T:
    try:
        return await found
    except (NotFound, PermissionDenied):
        raise _not_found(kind, name) from None


def _not_found(kind: str, name: str) -> NotFound:
    """The same words whether there is none, or none for this caller."""
    return NotFound(f"there is no {kind} {name!r} that you may read")
