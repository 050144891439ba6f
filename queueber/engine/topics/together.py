"""Together: acknowledge, publish, add, complete and fail in one transaction.

So a program reads messages or items, works on them, and writes what came of it, over queues and
topics alike. All of that has happened or nothing, whenever the program or the server dies.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from queueber.engine.kernel.transaction import Transaction
from queueber.engine.queue.add import add
from queueber.engine.queue.queue_state import QueueState
from queueber.engine.queue.remove import remove
from queueber.engine.queue.settle import Outcomes, settle
from queueber.engine.topics.group import Group
from queueber.engine.topics.groups import acknowledge, cursor
from queueber.engine.topics.publish import publish
from queueber.engine.topics.topic_state import TopicState
from queueber.engine.topics.topics import Topics
from queueber.errors import Aborted, FailedPrecondition
from queueber.ids import reference
from queueber.model import GroupKind, NewItems, Publication, TogetherDone


@dataclass(slots=True)
class Acknowledgement:
    """A group is done with messages of a partition: those before `offset`, or under a lease those
    at `offsets`. The first of the former is at `first_offset`; None: the last is meant."""

    topic: TopicState
    group: Group
    partition: int
    offset: int = 0
    lease: bytes = b""
    offsets: Sequence[int] = ()
    first_offset: int | None = None


@dataclass(slots=True)
class QueueStep:
    """What happens in one queue."""

    queue: QueueState
    add: NewItems | None = None
    outcomes: Outcomes = field(default_factory=Outcomes)


def together(
    tx: Transaction[Any],
    topics: Topics,
    publications: Sequence[tuple[TopicState, Publication]],
    acks: Sequence[Acknowledgement],
    queues: Sequence[QueueStep],
) -> TogetherDone:
    """Do all steps. Each queue is named once at most."""
    of_groups: dict[QueueState, list[Acknowledgement]] = {}
    for ack in acks:
        if ack.lease:
            of_groups.setdefault(ack.group.queue, []).append(ack)
        else:
            _check_not_done(tx, ack)
            acknowledge(tx, ack.topic, ack.group, ack.partition, ack.offset)
    for group, own in of_groups.items():
        _acknowledge_leased(tx, group, own)
    failed = [settle(tx.join(step.queue), step.outcomes) for step in queues]
    added = [None if step.add is None else add(tx.join(step.queue), step.add) for step in queues]
    return TogetherDone(publish(tx, topics, publications), added, failed)


def _acknowledge_leased(
    tx: Transaction[Any], group: QueueState, acks: Sequence[Acknowledgement]
) -> None:
    """All messages of one group leave their leases at once, as the items of a queue do."""
    named = [(ack, offset) for ack in acks for offset in ack.offsets]
    ids = [reference(ack.partition, offset) for ack, offset in named]
    held = remove(tx.join(group), ids, [ack.lease for ack, _ in named])
    if not all(held):
        ack, lost = named[held.index(False)]
        raise FailedPrecondition(
            f"offset {lost} of partition {ack.partition} of topic {ack.topic.name!r} is not in the "
            f"lease that group {ack.group.name!r} was named, or is named twice; nothing was done"
        )


def _check_not_done(tx: Transaction[Any], ack: Acknowledgement) -> None:
    """Refuse to do again what another consumer of an ordered group has done.

    A consumer that was taken over from may not know it yet, and may come back when the other one is
    gone. Its acknowledgement alone would change nothing, but the other steps of its call would.
    """
    if ack.group.kind is not GroupKind.ORDERED:
        return
    at = tx.pending.get((ack.group, ack.partition), cursor(ack.topic, ack.group, ack.partition))
    first = ack.offset - 1 if ack.first_offset is None else ack.first_offset
    if max(0, first) < at:
        raise Aborted(
            f"group {ack.group.name!r} is done with partition {ack.partition} of topic "
            f"{ack.topic.name!r} up to offset {at}, and the call is about offset {max(0, first)}: "
            "another consumer has done it; nothing was done",
            next=at,
        )
