"""A connection's fair share: how much of it is read in one turn of the loop.

Cap'n Proto takes as much as it has room for, and begins every call in it. So it gets little at
first, and more as long as that was not enough for a call.
"""

from queueber.rpc.policy import CALLS_A_TURN, CALLS_WHILE_NEW, READS_A_TURN
from queueber.service.session import Session

_PORTION_BYTES_NEW = 1 << 7
_PORTION_BYTES_MIN = 1 << 9
"""One of the smallest calls, and four."""
_PORTION_BYTES_MAX = 1 << 18


class FairShare:
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
