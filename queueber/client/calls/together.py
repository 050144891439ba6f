"""Steps over topics and queues that the server takes in one commit."""

from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from queueber.client.calls.adds import AddedIds, ids_of, size_of, write_items
from queueber.client.calls.publishes import check_publications
from queueber.client.calls.publishes import size_of as size_of_messages
from queueber.client.transport.connection import Connection
from queueber.client.transport.link import Link
from queueber.errors import ResourceExhausted
from queueber.limits import ITEM_WIRE_BYTES, MESSAGE_OVERHEAD_BYTES
from queueber.model import FailOutcome, NewItems, Publication, Published
from queueber.wire.items import read_added, read_fail_outcomes
from queueber.wire.messages import read_published, write_publication


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

    def send(link: Link) -> Any:
        request = link.service.together_request()
        _write(request.init("req"), steps, connection)
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


def _write(target: Any, steps: Steps, connection: Connection) -> None:
    publications = target.init("publications", len(steps.publications))
    for at, publication in enumerate(steps.publications):
        write_publication(publications[at], publication)
    acks = target.init("acks", len(steps.cursors) + len(steps.leased))
    for at, ((topic, group, partition), (first, offset)) in enumerate(steps.cursors.items()):
        _write_ack(acks[at], topic, group, partition)
        acks[at].firstOffset, acks[at].offset = first, offset
    for at, ((topic, group, partition, lease), offsets) in enumerate(
        steps.leased.items(), start=len(steps.cursors)
    ):
        _write_ack(acks[at], topic, group, partition)
        acks[at].lease = lease
        acks[at].offsets = offsets
    queues = target.init("queues", len(steps.queues))
    for at, (name, of_queue) in enumerate(steps.queues.items()):
        queues[at].queue = name
        _write_queue(queues[at], of_queue, connection)


def _write_ack(target: Any, topic: str, group: str, partition: int) -> None:
    target.topic = topic
    target.group = group
    target.partition = partition


def _write_queue(target: Any, steps: QueueSteps, connection: Connection) -> None:
    if steps.added is not None:
        write_items(steps.added, connection, target.init("add"))
    if steps.completed:
        complete = target.init("complete")
        complete.ids, complete.leases, complete.results = map(
            list, zip(*steps.completed, strict=True)
        )
    if steps.failed:
        fail = target.init("fail")
        fail.ids, fail.leases, fail.errors, fail.delaysMs = map(
            list, zip(*steps.failed, strict=True)
        )


def _read(response: Any, steps: Steps) -> Done:
    done = Done([read_published(each) for each in response.published])
    answers = zip(steps.queues.items(), response.added, response.failed, strict=True)
    for (name, asked), added, failed in answers:
        if asked.added is not None:
            done.added[name] = ids_of(read_added(added), 0, len(asked.added.contents))
        if asked.failed:
            done.failed[name] = read_fail_outcomes(failed)
    return done
