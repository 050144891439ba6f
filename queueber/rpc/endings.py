"""Connections that end at the same moment, a few in each turn of the loop.

To take one down costs as much as several calls. When a thousand go at once, as they do when a
machine with many clients goes down, the calls of others would wait for all of them.
"""

from collections import deque
from collections.abc import Callable

_ENDED_IN_A_TURN = 4


class Endings:
    def __init__(self, call_soon: Callable[[Callable[[], None]], object]) -> None:
        self._call_soon = call_soon
        self._waiting: deque[Callable[[], None]] = deque()
        self._ended = 0

    def run(self, end: Callable[[], None]) -> None:
        """End a connection now, or in one of the next turns."""
        if self._waiting or self._ended >= _ENDED_IN_A_TURN:
            self._waiting.append(end)
            return
        if not self._ended:
            self._call_soon(self._next_turn)
        self._ended += 1
        end()

    def _next_turn(self) -> None:
        self._ended = 0
        while self._waiting and self._ended < _ENDED_IN_A_TURN:
            self._ended += 1
            self._waiting.popleft()()
        if self._ended:
            self._call_soon(self._next_turn)
