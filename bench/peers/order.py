"""What a driver is told to do, and what came of it: they travel between processes."""

import time
from dataclasses import dataclass, field

from bench.measure import SECOND_NS


@dataclass(frozen=True, slots=True)
class Order:
    work: str
    """The operation; the drivers have the list of theirs."""
    name: str
    """Of the queue, or of the topic."""
    content_bytes: int
    items: int = 1
    """Items in a call."""
    callers: int = 1
    seconds: float = 0.0
    """The end of the order; some also end when nothing is left."""
    count: int = 0
    """What else the operation has to know."""


@dataclass(slots=True)
class Tally:
    """The outcome of an order."""

    items: int = 0
    started_ns: int = field(default_factory=time.perf_counter_ns)
    ended_ns: int = field(default_factory=time.perf_counter_ns)
    samples_ns: list[int] = field(default_factory=list)
    """Nanoseconds of each call, or from the producer to the consumer of each item."""

    def is_over(self, seconds: float) -> bool:
        return time.perf_counter_ns() - self.started_ns > seconds * SECOND_NS

    def count(self, items: int, began_ns: int) -> None:
        self.ended_ns = time.perf_counter_ns()
        self.items += items
        self.samples_ns.append(self.ended_ns - began_ns)

    @property
    def items_per_second(self) -> float:
        elapsed = self.ended_ns - self.started_ns
        return self.items * SECOND_NS / elapsed if elapsed else 0.0
