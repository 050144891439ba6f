"""How long to wait before a process that ended is started again."""

from collections.abc import Callable

_FIRST_SECONDS = 0.1
_SECONDS_MAX = 10.0
_LIVED_SECONDS = 60.0
"""One that lived so long did not fail at its start."""


class Backoff:
    """Twice as long after each early end, up to ten seconds."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._next = _FIRST_SECONDS
        self._started_at = 0.0

    def started(self) -> None:
        self._started_at = self._clock()

    def ended(self) -> float:
        """The process has ended: the seconds to wait."""
        if self._clock() - self._started_at > _LIVED_SECONDS:
            self._next = _FIRST_SECONDS
        wait, self._next = self._next, min(_SECONDS_MAX, 2 * self._next)
        return wait
