"""Retention: records that a queue keeps for a while, and when to look at each of them again.

The family `forget` has an entry for each such record, or for several of one kind and time, at the
time when the sweeper looks at them. A key is deleted then, unless it was added anew meanwhile. A
producer, batch or load that has been active since gets a later entry instead, so its activity costs
no write here. The owner of each kind of record registers a callback.
"""

from collections.abc import Callable
from typing import Any

from queueber.db.families import Family
from queueber.db.records.keys import (
    DIGEST_BYTES,
    NEVER_MS,
    PREFIX_BYTES,
    due_part,
    split_due_part,
)
from queueber.engine.kernel.due_scan import Done, read_due
from queueber.engine.kernel.transaction import Transaction

LookAt = Callable[[Transaction[Any], int, bytes], None]
"""Delete the records that an entry of a time names, or keep them for longer."""

KIND_BYTES = 1


class Retention:
    __slots__ = ("_kinds", "is_on_hold")

    def __init__(self) -> None:
        self._kinds: dict[bytes, LookAt] = {}
        self.is_on_hold = False
        """Whether a load is being committed: the keys that it has read must stay until it ends."""

    def register(self, kind: bytes, look_at: LookAt) -> None:
        self._kinds[kind] = look_at

    def remember(
        self, tx: Transaction[Any], at_ms: int, reference: bytes, kind: bytes, named: bytes = b""
    ) -> None:
        """Look at the record at that time; if others are `named`, at those instead."""
        tx.batch.put(Family.FORGET, tx.prefix + due_part(at_ms, reference), kind + named)
        self.remember_loaded(tx, at_ms, 1)

    def remember_loaded(self, tx: Transaction[Any], at_ms: int, count: int) -> None:
        """Count entries that a load brought as files, all of one time."""
        tx.counters.forgets += count
        tx.counters.forget_due_ms = min(tx.counters.forget_due_ms, at_ms)
        tx.due(at_ms)

    def cancel(self, tx: Transaction[Any], at_ms: int, reference: bytes) -> None:
        """Delete the entry of that time."""
        tx.batch.delete(Family.FORGET, tx.prefix + due_part(at_ms, reference))
        tx.counters.forgets -= 1

    def due_ms(self, forget_due_ms: int) -> int:
        return NEVER_MS if self.is_on_hold else forget_due_ms

    def forget(self, tx: Transaction[Any], records_max: int) -> Done:
        """Look at the records of due entries, until there were `records_max`."""
        if self.is_on_hold:
            return Done(0, NEVER_MS)
        counters = tx.counters
        due, counters.forget_due_ms, look_again_ms = read_due(
            tx,
            Family.FORGET,
            low_ms=counters.forget_due_ms,
            limit=records_max,
            total=counters.forgets,
        )
        looked_at = 0
        for key, value in due:
            at_ms, reference = split_due_part(key[PREFIX_BYTES:])
            if looked_at >= records_max:
                counters.forget_due_ms = look_again_ms = at_ms
                break
            self.cancel(tx, at_ms, reference)
            references = value[KIND_BYTES:] or reference
            self._kinds[value[:KIND_BYTES]](tx, at_ms, references)
            looked_at += len(references) // DIGEST_BYTES
        if not due:
            return Done(0, look_again_ms)
        # A record that is kept for longer has a later entry, which may be the only one.
        return Done(looked_at, min(look_again_ms, counters.forget_due_ms))
