"""Fair turns: what can wait is done a little at a time, so that each turn of the loop stays short.

Connections that have sent more than their share, that are new, or that end, wait here for a turn. A
connection within its share does not: its call is served in the turn in which it comes.
"""

from collections import deque
from collections.abc import Callable

from queueber.rpc.policy import TURN_SECONDS_MAX
from queueber.service.loop import Loop

_SHARE_MAX = 8
_APART = 3
"""One turn of the loop in so many is a fair turn: the calls that it begins are finished in those
between, and so are the calls of connections within their share."""


class FairTurns:
    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self._waiting: deque[Callable[[], None]] = deque()
        self._share = _SHARE_MAX // 2
        """How many go in a fair turn. What they cost is not known before: fewer go after one that
        took long, and more after one that did not."""
        self._gone = 0
        self._is_counting = False
        self._began_at = 0.0

    def run(self, go: Callable[[], None]) -> None:
        """Do it now, or in one of the next turns."""
        if self._waiting or self._gone >= self._share:
            self.wait(go)
            return
        self._count()
        self._gone += 1
        go()

    def wait(self, go: Callable[[], None]) -> None:
        """Do it in one of the next turns."""
        self._waiting.append(go)
        self._count()

    def _count(self) -> None:
        if not self._is_counting:
            self._is_counting = True
            self._began_at = self._loop.time()
            self._loop.call_soon(self._pass, _APART - 1)

    def _pass(self, left: int) -> None:
        if left:
            self._loop.call_soon(self._pass, left - 1)
            return
        if self._loop.time() - self._began_at > _APART * TURN_SECONDS_MAX:
            self._share = max(1, self._share // 2)
        else:
            self._share = min(_SHARE_MAX, self._share + 1)
        self._is_counting = False
        self._gone = min(self._share, len(self._waiting))
        if self._gone:
            self._count()
        for _ in range(self._gone):
            self._waiting.popleft()()
