"""Fair turns: connections take turns, and each is read a share at a time.

Connections that have sent more than their share, that are new, or that end, wait for a fair turn,
so that each turn of the loop stays short. A connection within its share does not: its call is
served in the turn in which it comes.
"""

from collections import deque
from collections.abc import Callable

from queueber.service.loop import Loop
from queueber.service.session import Session

TURN_SECONDS_MAX = 0.002
"""How long a turn of the loop should take at most while connections wait for fair turns."""
CALLS_WHILE_NEW = 16
"""A connection is new until it has begun so many calls: it takes turns with other new ones, as
nobody knows what it costs. Otherwise one call a connection would be a way to have all turns."""
CALLS_A_TURN = 4
"""Calls that one connection may begin in a turn of the loop before others have theirs; a few more
when they are small."""
READS_A_TURN = 64
"""The same for reads that begin no call."""

_PORTION_BYTES_NEW = 1 << 7
_PORTION_BYTES_MIN = 1 << 9
"""One of the smallest calls, and four."""
_PORTION_BYTES_MAX = 1 << 18


class FairShare:
    """How much of one connection is read in one turn of the loop.

    Cap'n Proto takes as much as it has room for, and begins every call in it. So it gets little at
    first, and more as long as that was not enough for a call.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._reads = 0
        self._begun_before = 0
        self._portion = _PORTION_BYTES_NEW

    @property
    def is_new(self) -> bool:
        """Nobody knows yet what the connection's calls cost."""
        return self._session.begun_ever < CALLS_WHILE_NEW

    @property
    def portion_min(self) -> int:
        return _PORTION_BYTES_NEW if self.is_new else _PORTION_BYTES_MIN

    def begin_turn(self) -> None:
        self._reads = self._session.begun = self._begun_before = 0
        self._portion = self.portion_min

    def take(self) -> bool:
        """Count a read; False when the connection has had its share."""
        self._reads += 1
        calls_max = 1 if self.is_new else CALLS_A_TURN
        return self._reads <= READS_A_TURN and self._session.begun < calls_max

    def begin_read(self) -> None:
        begun = self._session.begun
        if begun != self._begun_before:
            self._portion, self._begun_before = self.portion_min, begun

    def next_portion(self) -> int:
        """How many bytes to hand on next; more each time."""
        portion = self._portion
        self._portion = min(4 * portion, _PORTION_BYTES_MAX)
        return portion


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
