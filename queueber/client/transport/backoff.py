"""Delays between retries: they grow, and each is cut at random.

Random delays keep many clients from coming back to a restarted server in the same moment.
"""

import asyncio
from random import uniform

_FIRST_SECONDS = 0.02
_MAX_SECONDS = 2.0


class RetryDelays:
    """Each delay is up to twice the one before. Needs no running loop; use `seconds` with any."""

    def __init__(
        self, *, first_seconds: float = _FIRST_SECONDS, max_seconds: float = _MAX_SECONDS
    ) -> None:
        self._first_seconds = first_seconds
        self._max_seconds = max_seconds
        self.reset()

    def reset(self) -> None:
        """A call worked: begin again with the shortest delay."""
        self._next_seconds = self._first_seconds

    def seconds(self) -> float:
        """How long to sleep before the next try."""
        longest = self._next_seconds
        self._next_seconds = min(2 * longest, self._max_seconds)
        return longest * uniform(0.5, 1.0)


class Retries:
    """Tries of one call until a deadline, by the clock of the running asyncio loop."""

    def __init__(self, give_up_at: float) -> None:
        self.give_up_at = give_up_at
        self._delays = RetryDelays()

    async def pause(self) -> bool:
        """Sleep before the next try; False, and at once, when the deadline would pass."""
        seconds = self._delays.seconds()
        if asyncio.get_running_loop().time() + seconds >= self.give_up_at:
            return False
        await asyncio.sleep(seconds)
        return True
