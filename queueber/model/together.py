"""Values of calls that do many things at once."""

from collections.abc import Sequence
from dataclasses import dataclass

from queueber.model.items import Added, FailOutcome, NewItems
from queueber.model.topics import Publication, Published


@dataclass(slots=True)
class GroupAck:
    """A group is done with messages of a partition: those before `offset`, or under a lease those
    at `offsets`.

    An ordered group must not be done yet with the message at `first_offset`, which is the last one
    before `offset` unless it is given: otherwise another consumer has done the same.
    """

    topic: str
    group: str
    partition: int = 0
    offset: int = 0
    lease: bytes = b""
    offsets: Sequence[int] = ()
    first_offset: int | None = None


@dataclass(slots=True)
class QueueSteps:
    """What happens in one queue. A single lease, error or delay is that of all items."""

    queue: str
    add: NewItems | None = None
    completed: Sequence[bytes] = ()
    completed_leases: Sequence[bytes] = ()
    results: Sequence[bytes] = ()
    failed: Sequence[bytes] = ()
    failed_leases: Sequence[bytes] = ()
    errors: Sequence[str] = ()
    delays_ms: Sequence[int] = ()
    """-1, or none at all: the backoff of the queue."""


@dataclass(slots=True)
class Together:
    """Everything in it happens, or nothing."""

    publications: Sequence[Publication] = ()
    acks: Sequence[GroupAck] = ()
    queues: Sequence[QueueSteps] = ()


@dataclass(slots=True)
class TogetherDone:
    """The answers, in the order of the steps. One of `added` and `failed` for each queue."""

    published: list[Published]
    added: list[Added | None]
    failed: list[list[FailOutcome]]
