"""Long messages that are still coming in: how much memory they may take together."""

import contextlib
from collections import deque
from typing import Protocol


class Incoming(Protocol):
    def read_on(self) -> None:
        """There may be room now: ask again."""


class Intake:
    """A message has room for all of it before it is read, so that those under way can end."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._waiting: deque[Incoming] = deque()
        self.bytes = 0

    @property
    def is_crowded(self) -> bool:
        """Whether those who do not go on should go."""
        return bool(self._waiting)

    def reserve(self, stream: Incoming, size: int) -> bool:
        """Whether there is room; if not, the stream is told when to ask again."""
        if self.bytes and self.bytes + size > self._bytes_max:
            self._waiting.append(stream)
            return False
        self.bytes += size
        return True

    def forget(self, stream: Incoming) -> None:
        """It does not wait any more."""
        with contextlib.suppress(ValueError):
            self._waiting.remove(stream)

    def release(self, size: int) -> None:
        self.bytes -= size
        waiting, self._waiting = self._waiting, deque()
        for stream in waiting:
            stream.read_on()
