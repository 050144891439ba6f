"""Until when the handlers of a worker process may run, in memory that its parent reads, too.

A handler may never let go of the interpreter, so its process can tell nobody that it is late. What
it wrote just before it called the handler can still be read.
"""

from collections.abc import MutableSequence, Sequence

SLOTS_OF_HANDLER = 2
"""Slots for each of the `concurrency` handlers: an app may have as many threads, and tasks."""

_FREE = 0.0


class SharedDeadlines:
    """Threads begin and end handlers at any time: a call takes one slot, or gives it back."""

    def __init__(self, slots: MutableSequence[float]) -> None:
        self._slots = slots
        self._free = list(range(len(slots)))

    def begin(self, at: float) -> int | None:
        """The slot of a handler that may run until then; None: all are taken up by handlers that
        were given up."""
        try:
            slot = self._free.pop()
        except IndexError:
            return None
        self._slots[slot] = at
        return slot

    def end(self, slot: int) -> None:
        self._slots[slot] = _FREE
        self._free.append(slot)


def earliest(slots: Sequence[float]) -> float | None:
    """When the first of the handlers has to end; None: none that runs has to."""
    return min((at for at in slots if at != _FREE), default=None)
