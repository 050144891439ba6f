"""Changes: what happens to the items of a queue, told to whoever publishes it.

A queue whose changes go to a topic has `changes`; every other has None there, and pays for it with
one comparison an operation. What becomes of items because somebody polls or extends a lease, or
because a delay ends, is not told: nobody decided anything about the item.
"""

from collections.abc import Sequence
from enum import Enum
from typing import Any, NamedTuple, Protocol

from queueber.db.records.runs import Mark, Run
from queueber.engine.kernel.transaction import Transaction
from queueber.engine.queue.lifecycle import State
from queueber.ids import ItemId
from queueber.model import NewItems, On


class Change(Enum):
    """What happened to an item, and what kind of change that is."""

    ADDED = ("added", On.INSERT)
    FAILED = ("failed", On.UPDATE)
    RELEASED = ("released", On.UPDATE)
    EXPIRED = ("expired", On.UPDATE)
    REDRIVEN = ("redriven", On.UPDATE)
    RESCHEDULED = ("rescheduled", On.UPDATE)
    COMPLETED = ("completed", On.DELETE)
    REMOVED = ("removed", On.DELETE)
    DEAD = ("dead", On.DELETE)
    CANCELLED = ("cancelled", On.DELETE)
    PURGED = ("purged", On.DELETE)

    def __init__(self, word: str, on: On) -> None:
        self.word = word
        self.on = on


class Moved(NamedTuple):
    """Items that went from one state to another."""

    change: Change
    run: Run
    """As it was before."""
    was: State
    now: State
    mark: Mark | None = None
    """As it is after; None: the same."""
    visible_at_ms: int = 0
    """Of items that are now delayed."""
    error: str | None = None
    """Of an attempt that ended unfinished: why."""
    error_before: str | None = None


class Changes(Protocol):
    """Publishes the changes of one queue, in the transaction that makes them."""

    @property
    def takes_inserts(self) -> bool:
        """Whether it must know of every item that is added."""

    def added(self, tx: Transaction[Any], items: NewItems, ids: Sequence[ItemId]) -> None:
        """Items were added, with these ids."""

    def moved(self, tx: Transaction[Any], moves: Sequence[Moved]) -> None:
        """Items changed, in this order. What the store has of them is as it was before."""

    def queue_deleted(self, tx: Transaction[Any]) -> None:
        """The queue is deleted with all its items. That is no change of the items."""


def gone(change: Change, runs: Sequence[Run], was: State) -> list[Moved]:
    """Items that are deleted."""
    return [Moved(change, run, was, State.GONE) for run in runs]
