"""Schedules and callbacks, as a queue knows them: something may have to be added at some time.

A queue that has none pays for it with one comparison a sweep.
"""

from typing import Any, Protocol

from queueber.engine.kernel.due_scan import Done
from queueber.engine.kernel.transaction import Transaction


class Scheduled(Protocol):
    """The schedules of one queue, or the callbacks of its batches."""

    def due_ms(self) -> int:
        """When one of them is due next; `NEVER_MS`: none is."""

    def run_due(self, tx: Transaction[Any]) -> Done:
        """Add what the first one that is due says, and note it, in the same transaction."""
