"""Polls that found nothing and wait, first come first served."""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

from queueber.errors import QueueberError
from queueber.model import NOTHING_POLLED, Polled
from queueber.service.loop import Future, fail
from queueber.service.unread_answers import AnswerMemory


@dataclass(frozen=True, slots=True, eq=False)
class Asked:
    """What a call asks for: one lease for each count, bound to a connection if one is named."""

    counts: Sequence[int]
    lease_ms: int
    holder: str = ""
    """Who asks, for those who list leases."""
    connection: object | None = None
    memory: AnswerMemory | None = None
    partition: int | None = None
    """Of a group that shares messages: only those of this one."""


@dataclass(slots=True, eq=False, weakref_slot=True)
class PollCall:
    """A poll that its caller may withdraw while it waits."""

    is_withdrawn: bool = False
    waiter: "Waiter | None" = None

    def withdraw(self) -> None:
        self.is_withdrawn = True
        if self.waiter is not None:
            self.waiter.answer(NOTHING_POLLED)


@dataclass(slots=True, eq=False)
class Waiter:
    """One waiting poll. Its future gets what the poll got, or nothing when its time is up."""

    future: Future
    asked: Asked
    durable: Future = None
    """Ends once what the poll got is durable. Set before `future`, so that both share a sync."""

    def answer(self, polled: Polled) -> None:
        """Say what the poll got, unless its caller has gone."""
        if not self.future.done():
            self.future.set_result(polled)

    def fail(self, error: QueueberError) -> None:
        fail(self.future, error)


class Waiters:
    """The waiting polls of each queue, by the queue's number."""

    def __init__(self) -> None:
        self._queues: dict[int, OrderedDict[Waiter, None]] = {}

    def count(self, queue_id: int) -> int:
        return len(self._queues.get(queue_id, ()))

    def append(self, queue_id: int, waiter: Waiter) -> None:
        self._queues.setdefault(queue_id, OrderedDict())[waiter] = None

    def put_back(self, queue_id: int, waiters: list[Waiter]) -> None:
        """Put those back that were taken from the front, in their order."""
        for waiter in reversed(waiters):
            self.append(queue_id, waiter)
            self._queues[queue_id].move_to_end(waiter, last=False)

    def first(self, queue_id: int) -> Waiter | None:
        waiting = self._queues.get(queue_id)
        return next(iter(waiting)) if waiting else None

    def discard(self, queue_id: int, waiter: Waiter) -> None:
        """Take the waiter out, wherever it is; nothing happens if it is gone already."""
        waiting = self._queues.get(queue_id)
        if waiting is None or waiter not in waiting:
            return
        del waiting[waiter]
        if not waiting:
            del self._queues[queue_id]

    def take_queue(self, queue_id: int) -> list[Waiter]:
        return list(self._queues.pop(queue_id, ()))

    def take_all(self) -> list[Waiter]:
        return [waiter for queue_id in list(self._queues) for waiter in self.take_queue(queue_id)]
