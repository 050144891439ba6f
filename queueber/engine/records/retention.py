"""Retention: what a queue remembers for a while, and looks at again when its time has come.

The family `forget` has one entry for each such thing, at the time when it is to be looked at. A
key is deleted then. A producer, batch or load that has been active since gets a later entry
instead, so its activity costs no write here. Each noun registers what is to happen to its entries.
"""

from collections.abc import Callable
from typing import Any

from queueber.db.families import Family
from queueber.db.records.keys import NEVER_MS, PREFIX_BYTES, due_part, split_due_part
from queueber.engine.kernel.due_scan import read_due
from queueber.engine.kernel.duties import Done
from queueber.engine.kernel.transaction import Transaction

LookAt = Callable[[Transaction[Any], bytes], None]
"""Forget what the reference names, or remember it for longer."""


class Retention:
    """What one queue has to forget."""

    __slots__ = ("_kinds", "is_on_hold")

    def __init__(self) -> None:
        self._kinds: dict[bytes, LookAt] = {}
        self.is_on_hold = False
        """A load is being committed, and has looked at keys that must stay until it has ended."""

    def register(self, kind: bytes, look_at: LookAt) -> None:
        self._kinds[kind] = look_at

    def remember(self, tx: Transaction[Any], at_ms: int, reference: bytes, kind: bytes) -> None:
        """Look at it at that time."""
        tx.batch.put(Family.FORGET, tx.prefix + due_part(at_ms, reference), kind)
        self.remember_loaded(tx, at_ms, 1)

    def remember_loaded(self, tx: Transaction[Any], at_ms: int, count: int) -> None:
        """Entries that the store has taken in as files, all of one time."""
        tx.counters.forgets += count
        tx.counters.forget_due_ms = min(tx.counters.forget_due_ms, at_ms)
        tx.due(at_ms)

    def cancel(self, tx: Transaction[Any], at_ms: int, reference: bytes) -> None:
        """Do not look at it at that time."""
        tx.batch.delete(Family.FORGET, tx.prefix + due_part(at_ms, reference))
        tx.counters.forgets -= 1

    def due_ms(self, forget_due_ms: int) -> int:
        return NEVER_MS if self.is_on_hold else forget_due_ms

    def forget(self, tx: Transaction[Any], entries_max: int) -> Done:
        """Look at up to `entries_max` due entries."""
        counters = tx.counters
        due, counters.forget_due_ms, look_again_ms = read_due(
            tx.store,
            Family.FORGET,
            tx.prefix,
            low_ms=counters.forget_due_ms,
            now_ms=tx.now_ms,
            limit=entries_max,
            total=counters.forgets,
        )
        for key, kind in due:
            at_ms, reference = split_due_part(key[PREFIX_BYTES:])
            self.cancel(tx, at_ms, reference)
            self._kinds[kind](tx, reference)
        if not due:
            return Done(0, look_again_ms)
        # What was put off is due later than what is due next, but it may be the only one.
        return Done(len(due), min(look_again_ms, counters.forget_due_ms))
