"""The one write door: what is written together, and how memory changes after the write.

An operation reads, decides, and tells a transaction what to write. Whoever opened the transaction
commits it. Operations on several queues (`join`) and logs may share one: all of it is written, or
nothing. Operations read a queue as it was last written, so a transaction has one operation on the
items of each queue.

Before the write, objects may still encode what they gathered (`before_write`). Memory changes only
once the store has written the batch (`after_write`, in the order of the calls), so a transaction
that the store refuses changes nothing. No other file of the live engine calls `Store.write`.
"""

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from heapq import heapify, heappop, heappush
from typing import Any, Generic, Protocol, TypeVar, cast

from queueber.db.families import Family
from queueber.db.records.keys import NEVER_MS
from queueber.db.records.queues import Counters, encode_counters
from queueber.db.store.contract import Batch, Store
from queueber.errors import ResourceExhausted
from queueber.ids import IdSource, QueueId

T = TypeVar("T")

_LATE_DELETIONS_MAX = 100


class Agenda:
    """When the sweeper looks at which queue next, because work may be due there.

    A heap with late deletion: an entry is valid only while it has the time kept for its queue.
    """

    def __init__(self) -> None:
        self._due_ms: dict[QueueId, int] = {}
        self._heap: list[tuple[int, QueueId]] = []

    def schedule(self, queue_id: QueueId, at_ms: int) -> None:
        """Look at the queue at `at_ms`; if an earlier time is set already, that one stays."""
        if at_ms < self._due_ms.get(queue_id, NEVER_MS):
            self._due_ms[queue_id] = at_ms
            if len(self._heap) > 2 * len(self._due_ms) + _LATE_DELETIONS_MAX:
                self._heap = [(due_ms, each) for each, due_ms in self._due_ms.items()]
                heapify(self._heap)
            else:
                heappush(self._heap, (at_ms, queue_id))

    def due_ms(self, queue_id: QueueId) -> int:
        """When to look at one queue."""
        return self._due_ms.get(queue_id, NEVER_MS)

    def forget(self, queue_id: QueueId) -> None:
        self._due_ms.pop(queue_id, None)

    def next_ms(self) -> int:
        """When to look next; `NEVER_MS` when there is nothing to look at."""
        heap, due_ms = self._heap, self._due_ms
        while heap and due_ms.get(heap[0][1]) != heap[0][0]:
            heappop(heap)
        return heap[0][0] if heap else NEVER_MS

    def take_due(self, now_ms: int) -> QueueId | None:
        """A queue to look at now, taken off the agenda; None when none is due."""
        if self.next_ms() > now_ms:
            return None
        _, queue_id = heappop(self._heap)
        del self._due_ms[queue_id]
        return queue_id


def _nobody(_: Sequence[bytes]) -> None:
    """Nobody wants to be told."""


@dataclass(slots=True)
class Kernel:
    """What every transaction needs."""

    store: Store
    ids: IdSource
    agenda: Agenda = field(default_factory=Agenda)
    numbers: "Numbers" = field(init=False)
    when_leases_end: Callable[[Sequence[bytes]], object] = field(default=_nobody)
    """Told the ids of leases once it is written that they have ended; it must not fail."""

    def __post_init__(self) -> None:
        self.numbers = Numbers(self.store)


NEXT_NUMBER_KEY = b"next_queue"
_NUMBERS_MAX = (1 << 32) - 1


class Numbers:
    """Every queue, topic, group and log has a number, which begins its keys.

    A number is never used again, so what is new never has entries of what was deleted.
    """

    def __init__(self, store: Store) -> None:
        self.next = int.from_bytes(store.get(Family.DEFAULT, NEXT_NUMBER_KEY) or b"\1")

    def take(self, tx: "Transaction[Any]", count: int = 1) -> QueueId:
        """The first of `count` consecutive numbers, which are taken once this is written."""
        first: int = tx.pending.get(self, self.next)
        if first + count > _NUMBERS_MAX:
            raise ResourceExhausted(
                f"the store has given away {first - 1} of {_NUMBERS_MAX - 1} numbers for queues, "
                "partitions and groups, and none is used again; start a new store"
            )
        if self not in tx.pending:
            tx.after_write(self._written, tx.pending)
        tx.pending[self] = first + count
        tx.batch.put(Family.DEFAULT, NEXT_NUMBER_KEY, (first + count).to_bytes(4))
        return QueueId(first)

    def _written(self, pending: dict[object, Any]) -> None:
        self.next = pending[self]


class Step(Enum):
    """What the server does between two transactions of long work."""

    TURN = "answer other calls"
    SYNC = "make durable what was written"


Steps = Generator[Step, None, T]
"""Long work that is split into steps."""


class Noted(Protocol):
    """When to look at a topic or group, as the store knows it; see `noted_times.py`."""

    def note(self, tx: "Transaction[Any]", at_ms: int) -> None: ...
    def clear(self, tx: "Transaction[Any]") -> None: ...


class Owner(Protocol):
    """What a transaction knows of a queue, topic or group: it writes the counters with every
    change."""

    counters: Counters
    """As last written. Only `Transaction.commit` replaces them."""

    @property
    def name(self) -> str: ...
    @property
    def queue_id(self) -> QueueId: ...
    @property
    def prefix(self) -> bytes: ...
    @property
    def noted(self) -> Noted | None:
        """None: it is always in memory, so that nothing need be noted."""


Q_co = TypeVar("Q_co", covariant=True)
Other = TypeVar("Other", bound=Owner)

_Call = tuple[Callable[..., object], tuple[Any, ...]]
"""A function and its arguments."""

_NO_COUNTERS = Counters()


class Transaction(Generic[Q_co]):
    """Of one queue, or of None when what is written belongs to no queue."""

    __slots__ = (
        "_after", "_before", "_due_ms", "_kernel", "_parts", "batch", "counters", "ids", "now_ms",
        "pending", "prefix", "queue", "store",
    )  # fmt: skip

    def __init__(self, kernel: Kernel, now_ms: int, queue: Q_co) -> None:
        self._kernel = kernel
        self.store = kernel.store
        self.ids = kernel.ids
        self.now_ms = now_ms
        self.queue = queue
        self._due_ms = NEVER_MS
        self.batch: Batch = kernel.store.batch()
        self._before: list[_Call] = []
        self._after: list[_Call] = []
        self._parts: list[Transaction[Any]] = []
        """This one and those that were joined to it; empty if none was, so that a transaction has
        no reference to itself, and is freed with its batch at once."""
        self.pending: dict[object, Any] = {}
        """What objects have gathered so far, each under a key of its own."""
        if queue is None:
            self.prefix, self.counters = b"", _NO_COUNTERS
        else:
            owner: Any = queue  # an `Owner`; `cast` would be a call
            self.prefix = owner.prefix
            self.counters = owner.counters.copy()
            """As they will be once this is written."""

    def join(self, queue: Other) -> "Transaction[Other]":
        """The part of this transaction that changes another queue; committed with this one."""
        if not self._parts:
            self._parts.append(self)
        for part in self._parts:
            if part.queue is queue:
                return part
        joined = Transaction(self._kernel, self.now_ms, queue)
        joined.batch, joined.pending = self.batch, self.pending
        joined._before, joined._after, joined._parts = self._before, self._after, self._parts
        self._parts.append(joined)
        return joined

    def due(self, at_ms: int) -> None:
        """Look at the queue at `at_ms`; if an earlier time is set already, that one stays."""
        self._due_ms = min(self._due_ms, at_ms)

    def look_at(self, owner: Owner, at_ms: int) -> None:
        """As `due`, for a topic or group that this transaction is not of."""
        if at_ms < NEVER_MS:
            if owner.noted is not None:
                owner.noted.note(self, at_ms)
            self.after_write(self._kernel.agenda.schedule, owner.queue_id, at_ms)

    def schedule(self, at_ms: int) -> None:
        """As `due`, once it is written: only then is the time known."""
        self._kernel.agenda.schedule(cast("Owner", self.queue).queue_id, at_ms)

    def leases_end(self, lease_ids: Sequence[bytes]) -> None:
        """These leases are gone once this is written."""
        self._after.append((self._kernel.when_leases_end, (lease_ids,)))

    def before_write(self, call: Callable[..., object], *arguments: Any) -> None:
        """Call it when the operation is complete; it may still add to the batch."""
        self._before.append((call, arguments))

    def after_write(self, call: Callable[..., object], *arguments: Any) -> None:
        """Call it once the batch is written. It must not fail."""
        self._after.append((call, arguments))

    def commit(self) -> None:
        """Write everything. If the store refuses, nothing has changed, on disk or in memory.

        A transaction that only learned when the next entry is due writes nothing. Memory keeps that
        time: the next write stores it, and after a restart it is found again.
        """
        for call, arguments in self._before:
            call(*arguments)
        parts, batch = self._parts or [self], self.batch
        for each in parts:
            if each._due_ms < NEVER_MS and each.queue.noted is not None:
                each.queue.noted.note(self, each._due_ms)
        if len(batch) or any(each._has_changed() for each in parts):
            for each in parts:
                if each.queue is not None:
                    batch.put(Family.COUNTERS, each.prefix, encode_counters(each.counters))
            self.store.write(batch)
        agenda = self._kernel.agenda
        for each in parts:
            if each.queue is not None:
                each.queue.counters = each.counters
                if each._due_ms < NEVER_MS:
                    agenda.schedule(each.queue.queue_id, each._due_ms)
        for call, arguments in self._after:
            call(*arguments)
        # Calls may refer to the transaction: without them it is freed at once, with its batch.
        self._before.clear()
        self._after.clear()

    def _has_changed(self) -> bool:
        """Whether the counters differ from those that were last written, but in low-water marks."""
        owner = cast("Owner | None", self.queue)
        return owner is not None and not owner.counters.differs_in_low_marks_only(self.counters)
