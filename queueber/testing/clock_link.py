"""How a test tells its server to move the clock: a pair of sockets, one of them inherited.

Nobody else can reach it: it has no address. A request is a line with the milliseconds to move by,
its answer a line with the time that the clock shows once all that became due is done.
"""

import contextlib
import socket
from typing import Self

from queueber.limits import DAY_MS

ADVANCE_MS_MAX = 3650 * DAY_MS
"""How far a test may move the clock of its server, in all: times stay such as programs meet."""

_ANSWER_SECONDS_MAX = 60.0
"""How long a move may take: whatever became due meanwhile is done within it."""


class ClockLink:
    """The end of the test."""

    def __init__(self, ours: socket.socket) -> None:
        ours.settimeout(_ANSWER_SECONDS_MAX)
        self._socket = ours
        self._answers = ours.makefile("rb")

    @classmethod
    def pair(cls) -> tuple[Self, socket.socket]:
        """The end of the test, and the one that the server inherits."""
        ours, theirs = socket.socketpair()
        return cls(ours), theirs

    def advance(self, ms: int) -> None:
        """Returns when the server has done what became due."""
        answer = b""
        with contextlib.suppress(OSError):
            self._socket.sendall(b"%d\n" % ms)
            answer = self._answers.readline()
        if not answer:
            raise RuntimeError("the server does not answer; its log says why it has ended")

    def close(self) -> None:
        self._answers.close()
        self._socket.close()
