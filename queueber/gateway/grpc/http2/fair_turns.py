"""FairTurns: connections that send much, or are new, are handled one after the other.

A connection that sends a few calls is handled when they come. One that sends more, and one that
has just been made, waits here; in a turn of the loop few of those are handled, whatever their
number. So callers that behave wait for a millisecond or two, not for everybody else.
"""

import asyncio
from collections import deque
from typing import Protocol

_CONNECTIONS_A_TURN = 4


class Waiting(Protocol):
    def take_turn(self) -> None: ...


class FairTurns:
    def __init__(self) -> None:
        self._waiting: deque[Waiting] = deque()

    def wait(self, connection: Waiting) -> None:
        """Have it called in one of the next turns of the loop, once."""
        if not self._waiting:
            asyncio.get_running_loop().call_soon(self._run)
        self._waiting.append(connection)

    def _run(self) -> None:
        waiting = self._waiting
        for _ in range(min(len(waiting), _CONNECTIONS_A_TURN)):
            waiting[0].take_turn()
            waiting.popleft()  # not before: one that waits again is behind all others
        if waiting:
            asyncio.get_running_loop().call_soon(self._run)
