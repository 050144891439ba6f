"""An item in whatever state, and what happened to it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from queueber.model.items import ItemInfo, ItemState
from queueber.model.queues import LeaseInfo
from queueber.model.results import Result


class AttemptEnd(Enum):
    """How an attempt ended that failed."""

    FAILED = "failed"
    """Its holder said so."""
    EXPIRED = "expired"
    """Its lease ran out."""
    DISCONNECTED = "disconnected"
    """The connection of its holder ended."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """An attempt at an item that failed."""

    at_ms: int
    end: AttemptEnd | None
    """None if it is not known any more: of the last 20 it is."""
    error: str
    """Of the last attempt the whole error, of those before it the beginning."""


@dataclass(frozen=True, slots=True)
class FoundItem:
    """An item that is in a queue, or that is done and has a result."""

    id: bytes
    state: ItemState | None
    """None if it is done."""
    item: ItemInfo | None
    """As `peek` shows it; None if it is done."""
    attempts: Sequence[Attempt] = ()
    """Those that failed since it was added or redriven, oldest first; none if it is done."""
    lease: LeaseInfo | None = None
    """If it is leased: who holds it."""
    result: Result | None = None
    """If it is done."""

    @property
    def is_done(self) -> bool:
        return self.result is not None

    @property
    def key(self) -> str:
        return _one_of(self.item, self.result).key

    @property
    def batch(self) -> str:
        return _one_of(self.item, self.result).batch

    @property
    def attributes(self) -> Mapping[str, str]:
        return _one_of(self.item, self.result).attributes


def _one_of(item: ItemInfo | None, result: Result | None) -> ItemInfo | Result:
    if item is None and result is None:
        raise ValueError("an item is in a queue, or has a result")
    return item or result  # type: ignore[return-value]  # one of them is there


@dataclass(frozen=True, slots=True)
class Finding:
    """The answer to one call that looks for an item."""

    id: bytes
    """Of the item, also if it is not found; empty if its key is not remembered."""
    found: FoundItem | None
    next_offset: int = 0
    """Where the search in the results goes on; 0: it is over."""
