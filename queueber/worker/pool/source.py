"""Where the items of a worker come from: a queue, or a shared group of a topic.

A shared group is a queue of messages, so the worker treats it as one. Only results have no place
there: a message that is done is acknowledged, as is an item whose result nobody wants.
"""

from typing import Any

from queueber.client import AsyncClient, AsyncLease, AsyncQueue, Client
from queueber.client.arguments import values
from queueber.errors import AlreadyExists
from queueber.worker.handlers.kinds import JobItem, Kind, Kinds
from queueber.worker.handlers.work_item import HeldLease, WorkItem
from queueber.worker.worker_settings import WorkerSettings

_NAME_CHARS_MAX = 400
"""Of a job that the worker does not know: it is logged, and kept for a while."""


class WorkMessage(WorkItem):
    """A message of a topic as a handler gets it: an item whose contents are the payload."""

    __slots__ = ()

    @property
    def payload(self) -> bytes:
        return self.contents

    @property
    def partition(self) -> int:
        return int.from_bytes(self.id[6:8])

    @property
    def offset(self) -> int:
        return int.from_bytes(self.id[8:])


class QueueWithoutResults:
    """A queue, or a shared group, with the calls that a worker makes; it keeps no results."""

    def __init__(self, queue: AsyncQueue) -> None:
        self._queue = queue
        self.name = queue.name
        self.poll = queue.poll
        self.extend = queue.extend
        self.fail = queue.fail
        self.release = queue.release
        self.stats = queue.stats

    async def complete(
        self, ids: values.ItemIds, results: values.CompletedResults, *, lease: values.Id
    ) -> list[bool]:
        """Remove the items, or acknowledge the messages."""
        return await self._queue.remove(ids, lease=lease)


def open_source(client: AsyncClient, settings: WorkerSettings, source: str) -> Any:
    """The queue that the worker polls, or one of them. It is not created here."""
    if settings.topic is None:
        queue = client.queue(source, must_exist=True)
        return queue if settings.keeps_results else QueueWithoutResults(queue)
    topic = client.topic(settings.topic, must_exist=True)
    return QueueWithoutResults(topic.group(settings.group))


async def create_source_async(client: AsyncClient, settings: WorkerSettings, source: str) -> None:
    """Create the queue, or topic and group, unless they exist."""
    if settings.topic is None:
        await client.queue(source).stats()
        return
    try:
        await client.topic(settings.topic).create_group(settings.group, kind="shared")
    except AlreadyExists:  # with settings of its own
        await client.topic(settings.topic).group(settings.group).stats()


def create_sources(client: Client, settings: WorkerSettings) -> None:
    if settings.topic is None:
        for queue in settings.queue_weights:
            client.queue(queue).stats()
        return
    try:
        client.topic(settings.topic).create_group(settings.group, kind="shared")
    except AlreadyExists:
        client.topic(settings.topic).group(settings.group).stats()


def work_items(lease: AsyncLease, held: HeldLease, settings: WorkerSettings) -> list[WorkItem]:
    kind = WorkItem if settings.topic is None else WorkMessage
    return [kind(item, held) for item in lease.items]


def job_items(
    lease: AsyncLease, held: HeldLease, kinds: Kinds
) -> tuple[list[WorkItem], list[WorkItem]]:
    """The items whose kinds are known, and those of other kinds."""
    known: list[WorkItem] = []
    unknown: list[WorkItem] = []
    for item in lease.items:
        job = JobItem(item, held)
        kind = kinds.kind_of(job)
        if isinstance(kind, str):
            job.kind = Kind(kind[:_NAME_CHARS_MAX], repr, is_coroutine=False)
            unknown.append(job)
        else:
            job.kind = kind
            known.append(job)
    return known, unknown
