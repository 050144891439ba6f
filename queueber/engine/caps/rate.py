"""A rate, kept as one number: the time at which it allows a full burst again.

A rate of `items` in `ms` is a bucket with so many tokens. Every item that is leased takes one, and
they come back evenly over that time. The number says how much of the bucket is spent, at any later
moment: so it is written with the counters, and a restart neither fills the bucket nor empties it.
It is in microseconds, and rounded up: a rate is never passed.
"""

from typing import NamedTuple

_US = 1000
"""Microseconds in a millisecond."""


class Rate(NamedTuple):
    items: int
    ms: int

    def room(self, full_at_us: int, now_ms: int) -> int:
        """How many items it allows now."""
        return (self._us - self._spent_us(full_at_us, now_ms)) * self.items // self._us

    def take(self, full_at_us: int, count: int, now_ms: int) -> int:
        """The number once so many items are leased."""
        spent_us = self._spent_us(full_at_us, now_ms) + _divided(count * self._us, self.items)
        return now_ms * _US + spent_us

    def due_ms(self, full_at_us: int, now_ms: int, items: int = 1) -> int:
        """When it allows so many items, at most a burst; now or before, if it does so already."""
        full_at_us = now_ms * _US + self._spent_us(full_at_us, now_ms)
        return _divided(full_at_us - self._us + _divided(items * self._us, self.items), _US)

    def within(self, full_at_us: int, now_ms: int) -> int:
        """The number, or that of an empty bucket if more than all of it seems to be spent: the
        clock was set back since, or the rate has changed. It has to be stored, or the bucket would
        stay empty until the clock is where it was."""
        return min(full_at_us, now_ms * _US + self._us)

    @property
    def _us(self) -> int:
        return self.ms * _US

    def _spent_us(self, full_at_us: int, now_ms: int) -> int:
        # No more than all of it, see `within`.
        return min(max(full_at_us - now_ms * _US, 0), self._us)


def _divided(number: int, by: int) -> int:
    """Rounded up."""
    return -(-number // by)
