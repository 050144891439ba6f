"""Answers that their callers have not read: how many bytes there are, and whom to hang up on."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from queueber.gateway.problems import too_busy
from queueber.limits import MIB

LARGE_BYTES = 8 * MIB
"""What the largest answers have. So much, or half of the limit, must be free before one is asked
for."""
PATIENCE_SECONDS = 1.0
"""A caller that has waited for less is not hung up on to make room for the answers of others."""


class Reader(Protocol):
    """A connection."""

    def hang_up(self) -> None: ...


@dataclass(slots=True)
class _Held:
    size: int
    since: float


def _loop_seconds() -> float:
    return asyncio.get_running_loop().time()


class UnreadAnswers:
    """The bytes of all answers of one process that are not with the system yet, by connection.

    Above the limit the connections with the most bytes that have waited longest are cut at once, so
    there are never more, however fast they come.
    """

    def __init__(self, bytes_max: int, clock: Callable[[], float] | None = None) -> None:
        self.bytes_max = bytes_max
        self._clock = clock or _loop_seconds
        self.used = 0
        self._held: dict[Reader, _Held] = {}

    def change(self, reader: Reader, size: int) -> None:
        """So many bytes more, or fewer, are held for this caller."""
        held = self._held.get(reader)
        if held is None:
            if size <= 0:
                return  # it was hung up on meanwhile
            held = self._held[reader] = _Held(0, self._clock())
        held.size += size
        self.used += size
        if held.size <= 0:
            self.forget(reader)
        elif self.used > self.bytes_max:
            self._cut(self.bytes_max, PATIENCE_SECONDS)
            self._cut(self.bytes_max, 0)

    def forget(self, reader: Reader) -> None:
        """The caller has read everything, or is gone."""
        held = self._held.pop(reader, None)
        if held is not None:
            self.used -= held.size

    def make_room(self) -> None:
        """Before a large answer is asked for: hang up on callers that do not read, or refuse."""
        free_at = max(self.bytes_max // 2, self.bytes_max - LARGE_BYTES)
        if self.used > free_at:
            self._cut(free_at, PATIENCE_SECONDS)
        if self.used > free_at:
            raise too_busy(
                f"the gateway is busy: callers have not read {self.used} bytes of their answers; "
                f"the limit is {self.bytes_max}, retry"
            )

    def _cut(self, target: int, patience: float) -> None:
        now = self._clock()
        waited = [
            (held.size * (now - held.since), reader)
            for reader, held in self._held.items()
            if now - held.since >= patience
        ]
        for _, reader in sorted(waited, key=lambda each: -each[0]):
            if self.used <= target:
                return
            self.forget(reader)
            reader.hang_up()
