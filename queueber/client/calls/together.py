"""Steps over topics and queues that the server takes in one commit."""

from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from queueber import model
from queueber.client.calls.adds import AddedIds, ids_of, size_of
from queueber.client.calls.features import check_new_items
from queueber.client.calls.publishes import check_publications
from queueber.client.calls.publishes import size_of as size_of_messages
from queueber.client.transport.connection import Connection
from queueber.client.transport.link import Link
from queueber.errors import ResourceExhausted
from queueber.limits import ITEM_WIRE_BYTES, MESSAGE_OVERHEAD_BYTES
from queueber.model import FailOutcome, GroupAck, NewItems, Publication, Published, Together
from queueber.wire.together import read_together_done, write_together


@dataclass(slots=True)
class QueueSteps:
    """What happens to one queue."""

    added: NewItems | None = None
    completed: list[tuple[bytes, bytes, bytes]] = field(default_factory=list)
    """Id, lease and result of each item."""
    failed: list[tuple[bytes, bytes, str, int]] = field(default_factory=list)
    """Id, lease, error and delay of each item."""

    @property
    def size(self) -> int:
        added = 0 if self.added is None else size_of(self.added)
        completed = sum(len(result) for _, _, result in self.completed)
        return added + completed + sum(len(error.encode()) for _, _, error, _ in self.failed)

    @property
    def count(self) -> int:
        added = 0 if self.added is None else len(self.added.contents)
        return added + len(self.completed) + len(self.failed)

    def of(self, queue: str) -> model.QueueSteps:
        """As the call has them, in columns."""
        steps = model.QueueSteps(queue, self.added)
        if self.completed:
            steps.completed, steps.completed_leases, steps.results = zip(
                *self.completed, strict=True
            )
        if self.failed:
            steps.failed, steps.failed_leases, steps.errors, steps.delays_ms = zip(
                *self.failed, strict=True
            )
        return steps


@dataclass(slots=True)
class Steps:
    publications: list[Publication] = field(default_factory=list)
    cursors: dict[tuple[str, str, int], tuple[int, int]] = field(default_factory=dict)
    """Topic, group and partition of ordered groups, the first offset that is done, and the one up
    to which all are."""
    leased: dict[tuple[str, str, int, bytes], list[int]] = field(default_factory=dict)
    """Topic, group, partition and lease of shared groups, and the offsets that are done."""
    queues: dict[str, QueueSteps] = field(default_factory=dict)

    def of_queue(self, name: str) -> QueueSteps:
        return self.queues.setdefault(name, QueueSteps())

    @property
    def is_empty(self) -> bool:
        return not (self.publications or self.cursors or self.leased or self.queues)


@dataclass(slots=True)
class Done:
    """What came of the steps, in the order in which they were given."""

    published: list[Published] = field(default_factory=list)
    added: dict[str, AddedIds] = field(default_factory=dict)
    """By queue."""
    failed: dict[str, list[FailOutcome]] = field(default_factory=dict)
    """By queue."""


def take_steps(connection: Connection, steps: Steps) -> "Future[Done]":
    check_publications(steps.publications)
    _check_size(connection, steps)
    together = _together(steps)

    def send(link: Link) -> Any:
        for each in together.queues:
            if each.add is not None:
                check_new_items(link.server, each.add)
        request = link.service.together_request()
        write_together(request.init("req"), together)
        return request.send()

    return connection.ask(send, lambda response: _read(response.resp, steps), is_repeatable=False)


def _check_size(connection: Connection, steps: Steps) -> None:
    parts = sum(len(each.messages.payloads) for each in steps.publications)
    parts += sum(map(len, steps.leased.values())) + len(steps.cursors)
    parts += sum(each.count for each in steps.queues.values())
    size = sum(size_of_messages(each.messages) for each in steps.publications)
    size += sum(each.size for each in steps.queues.values())
    size += parts * ITEM_WIRE_BYTES + MESSAGE_OVERHEAD_BYTES
    limit = connection.server.message_bytes_max
    if size > limit:
        raise ResourceExhausted(f"the steps have {size} bytes; the limit is {limit}")


def _together(steps: Steps) -> Together:
    """The steps as the call has them."""
    ordered = [
        GroupAck(topic, group, partition, offset, first_offset=first)
        for (topic, group, partition), (first, offset) in steps.cursors.items()
    ]
    shared = [
        GroupAck(topic, group, partition, lease=lease, offsets=offsets)
        for (topic, group, partition, lease), offsets in steps.leased.items()
    ]
    queues = [of_queue.of(name) for name, of_queue in steps.queues.items()]
    return Together(steps.publications, [*ordered, *shared], queues)


def _read(response: Any, steps: Steps) -> Done:
    told = read_together_done(response)
    done = Done(told.published)
    for (name, asked), added, failed in zip(
        steps.queues.items(), told.added, told.failed, strict=True
    ):
        if asked.added is not None and added is not None:
            done.added[name] = ids_of(added, 0, len(asked.added.contents))
        if asked.failed:
            done.failed[name] = failed
    return done
