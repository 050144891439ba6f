"""A histogram: how often a value was within each of some bounds."""

from bisect import bisect_left
from collections.abc import Sequence


class Histogram:
    """Observing costs a search in a short tuple and two additions, so that every call can do it.

    One thread observes at a time. Another may read meanwhile: it misses at most the last value.
    """

    __slots__ = ("bounds", "buckets", "sum")

    def __init__(self, bounds: Sequence[float]) -> None:
        """`bounds` are the upper bounds of the buckets; one more bucket has none."""
        self.bounds = tuple(bounds)
        self.buckets = [0] * (len(bounds) + 1)
        self.sum = 0.0

    def observe(self, value: float) -> None:
        self.sum += value
        self.buckets[bisect_left(self.bounds, value)] += 1

    @property
    def count(self) -> int:
        return sum(self.buckets)

    @property
    def values(self) -> tuple[float, ...]:
        """As a sample has them."""
        return (self.sum, *self.buckets)
