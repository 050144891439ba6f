"""Kinds of jobs as a worker sees them: which function an item is for, and for how long it may run.

A worker with one function for all items has no kinds. `queueber.App` has them.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from queueber.worker.handlers.work_item import WorkItem


class JobItem(WorkItem):
    """An item of a worker with kinds of jobs."""

    __slots__ = ("has_backoff", "kind")

    has_backoff: bool
    """Whether the server knows a backoff of the item's own, in place of that of its kind."""
    kind: "Kind"
    """All are set before the item goes to a handler, and so is `timeout`: the seconds that its
    handler may take, if the item or its kind has a limit of its own."""

    @property
    def job(self) -> str:
        return self.kind.name


@dataclass(frozen=True, slots=True)
class Kind:
    """What a worker does with the items of one kind."""

    name: str
    handler: Callable[[Any], Any]
    """A function of the item, or a coroutine function."""
    is_coroutine: bool
    timeout_seconds: float | None = None
    """How long the handler may run; None: as long as the worker's time limit says."""
    backoff: Sequence[float] | None = None
    """After which failure an item comes back in how many seconds; None: as its queue says."""

    def delay_after(self, attempt: int) -> float | None:
        """How long an item stays away after this failed attempt; the first is 1."""
        return self.backoff[min(attempt, len(self.backoff)) - 1] if self.backoff else None


class NoHandler:
    """A function that an app calls with arguments: it is no handler of items."""


class Kinds(ABC):
    """Finds the kind of each item. A worker takes one in place of a handler."""

    reference = ""
    """The name by which a worker was given it, which its processes import in turn: the module may
    do more than define it, such as setting up a framework."""

    @abstractmethod
    def all_kinds(self) -> Sequence[Kind]:
        """Those that are known when the worker starts; later ones are not looked for."""

    @abstractmethod
    def kind_of(self, item: JobItem) -> Kind | str:
        """The kind, with `item.value`, `item.timeout` and `item.has_backoff` set; the name of one
        that is unknown."""

    @abstractmethod
    def queue_weights(self) -> Mapping[str, int]:
        """The queues to serve if the worker names none, each with its weight."""


def call_kind(item: JobItem) -> Any:
    """What the function of its kind returns; for a coroutine function what is to be awaited."""
    return item.kind.handler(item)
