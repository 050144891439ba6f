"""Duties: what becomes due because time passes, as one table.

Opening a store and sweeping both read the table: the sweeper looks at a queue at the earliest time
of its duties, and runs those that are due, a bounded slice of each in a transaction of its own.
`sweep.py` lists the duties; nothing else knows which there are.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from queueber.db.records.keys import NEVER_MS
from queueber.engine.kernel.kernel import Kernel
from queueber.engine.kernel.transaction import Owner, Transaction

Q = TypeVar("Q", bound=Owner)


@dataclass(frozen=True, slots=True)
class Done:
    """What one slice of a duty did."""

    moved: int
    look_again_ms: int | None = None
    """When to look again; `NEVER_MS`: nothing is left. None: ask the duty's `due_ms`."""


@dataclass(frozen=True, slots=True)
class Duty(Generic[Q]):
    name: str
    due_ms: Callable[[Q, int], int]
    """When the duty is due next in a queue, given the time now; `NEVER_MS`: it is not."""
    run: Callable[[Transaction[Q], int], Done]
    """Do a slice of at most that many entries. Called only when the duty is due."""


class Duties(Generic[Q]):
    """The duties of all queues, in the order in which a sweep does them."""

    def __init__(self, duties: Sequence[Duty[Q]]) -> None:
        self._duties = duties

    def due_ms(self, queue: Q, now_ms: int) -> int:
        """When one of them is due next."""
        return min(duty.due_ms(queue, now_ms) for duty in self._duties)

    def run(self, kernel: Kernel, queue: Q, now_ms: int, items_max: int) -> dict[str, int]:
        """Do a slice of each that is due, and schedule the next look; what each of them moved."""
        moved: dict[str, int] = {}
        look_again_ms = NEVER_MS
        for duty in self._duties:
            due_ms = duty.due_ms(queue, now_ms)
            if due_ms <= now_ms:
                tx = Transaction(kernel, now_ms, queue)
                done = duty.run(tx, items_max)
                tx.commit()
                moved[duty.name] = done.moved
                again_ms = done.look_again_ms
                due_ms = duty.due_ms(queue, now_ms) if again_ms is None else again_ms
            look_again_ms = min(look_again_ms, due_ms)
        if look_again_ms < NEVER_MS:
            kernel.agenda.schedule(queue.queue_id, look_again_ms)
        return moved
