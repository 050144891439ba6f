"""Delays between retries: they grow, and each is cut at random."""

import asyncio
from random import SystemRandom

_FIRST_DELAY_SECONDS = 0.02
_DELAY_SECONDS_MAX = 2.0

# The generator of the whole process is the program's: tests seed it, and look at its state.
_uniform = SystemRandom().uniform


class Retries:
    """Tries of one call until a deadline, by the clock of the running asyncio loop.

    Each delay is up to twice the one before, cut at random, so that many clients do not come back
    to a restarted server in the same moment.
    """

    def __init__(self, give_up_at: float) -> None:
        self.give_up_at = give_up_at
        self._next_seconds = _FIRST_DELAY_SECONDS

    def seconds(self) -> float:
        """How long to sleep before the next try."""
        longest = self._next_seconds
        self._next_seconds = min(2 * longest, _DELAY_SECONDS_MAX)
        return longest * _uniform(0.5, 1.0)

    async def pause(self) -> bool:
        """Sleep before the next try; False, and at once, when the deadline would pass."""
        seconds = self.seconds()
        if asyncio.get_running_loop().time() + seconds >= self.give_up_at:
            return False
        await asyncio.sleep(seconds)
        return True
