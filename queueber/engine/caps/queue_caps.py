"""The caps of a whole queue: items that are leased at once, and in a time.

A queue without caps has None in the place of this object, and pays for it with a comparison a poll.
What polls may not have stays where it is: nothing is scanned to find that out.
"""

from collections.abc import Sequence
from typing import Any

from queueber.db.records.keys import NEVER_MS
from queueber.db.records.queues import Counters
from queueber.engine.caps.cap_keys import CapKeys
from queueber.engine.caps.rate import Rate
from queueber.engine.kernel.due_scan import Done
from queueber.engine.kernel.transaction import Transaction
from queueber.limits import SECOND_MS
from queueber.model import QueueSettings

_NO_CAP = 1 << 62


class QueueCaps:
    """How many items of one queue polls may lease."""

    __slots__ = ("_concurrency_max", "_rate", "keys")

    def __init__(self, concurrency_max: int, rate: Rate | None, keys: CapKeys | None) -> None:
        self.keys = keys
        """If items are capped apart by an attribute, or were until now."""
        self._concurrency_max = concurrency_max or _NO_CAP
        self._rate = rate

    def room(self, counters: Counters, now_ms: int) -> int:
        """How many items may be leased now."""
        # More are leased than may be if the cap was lowered meanwhile.
        room = max(0, self._concurrency_max - counters.leased)
        if self._rate is not None:
            room = min(room, self._rate.room(counters.rate_full_at_us, now_ms))
        return room

    def due_ms(self, counters: Counters, now_ms: int) -> int:
        """When the rate allows an item; `NEVER_MS` if it does so now. What waits for the end of a
        lease waits for no time."""
        if self._rate is None:
            return NEVER_MS
        full_at_us = counters.rate_full_at_us
        if self._rate.within(full_at_us, now_ms) < full_at_us:
            return now_ms  # to be corrected
        at_ms = self._rate.due_ms(full_at_us, now_ms)
        return at_ms if at_ms > now_ms else NEVER_MS

    def correct(self, tx: Transaction[Any]) -> None:
        """The clock was set back, or the rate has changed: no more is spent than all of it."""
        if self._rate is not None:
            counters = tx.counters
            counters.rate_full_at_us = self._rate.within(counters.rate_full_at_us, tx.now_ms)

    def allowed(self, tx: Transaction[Any], counts: Sequence[int]) -> list[int]:
        """How many items each of some polls may get, the first ones first."""
        left = self.room(tx.counters, tx.now_ms)
        allowed: list[int] = []
        for count in counts:
            allowed.append(min(count, left))
            left -= allowed[-1]
        return allowed

    def leased(self, tx: Transaction[Any], count: int) -> None:
        """Count items that polls got. If the rate allows none after them, look at the queue again
        once it does: whoever waits is served then."""
        if self._rate is not None:
            counters = tx.counters
            counters.rate_full_at_us = self._rate.take(counters.rate_full_at_us, count, tx.now_ms)
            tx.due(self.due_ms(counters, tx.now_ms))


def queue_caps(settings: QueueSettings, counters: Counters) -> QueueCaps | None:
    """None if the queue has no caps, and nothing is left of those that it had."""
    keys = None
    key_rate = _rate(settings.cap_by_rate_items, settings.cap_by_rate_ms)
    is_capped_by = settings.cap_by and (settings.cap_by_concurrency_max or key_rate)
    if is_capped_by or counters.slots or counters.parked or counters.cap_dues:
        keys = CapKeys(settings.cap_by, settings.cap_by_concurrency_max, key_rate)
    rate = _rate(settings.rate_items, settings.rate_ms)
    if keys is None and rate is None and not settings.concurrency_max:
        return None
    return QueueCaps(settings.concurrency_max, rate, keys)


def _rate(items: int, ms: int) -> Rate | None:
    return Rate(items, ms or SECOND_MS) if items else None


def allow_by_rate(tx: Transaction[Any], _: int) -> Done:
    """The rate allows an item again: the look itself has waiting polls served."""
    if tx.queue.caps is not None:
        tx.queue.caps.correct(tx)
    return Done(0)
