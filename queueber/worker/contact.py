"""Whether the server answers: noticed by every call, told once each way."""

import asyncio
from collections.abc import Callable
from random import uniform
from typing import Protocol

from queueber.errors import QueueberError
from queueber.worker.tally import Tally

_PAUSE_SECONDS_MIN = 0.1
_PAUSE_SECONDS_MAX = 3.0
"""Beside the pauses of the client, which has tried for a while already."""

_REPEAT_SECONDS = 60.0
"""A server that refuses some calls and answers others is told about so often."""


class Journal(Protocol):
    """Where events go: a logger of structlog, or a pipe to the process that has one."""

    def info(self, event: str, **facts: object) -> object: ...

    def warning(self, event: str, **facts: object) -> object: ...


class Contact:
    def __init__(self, journal: Journal, tally: Tally) -> None:
        self._journal = journal
        self._tally = tally
        self.is_lost = False
        self.on_doubt: Callable[[], None] = lambda: None
        """Called when leases may have been lost: the server is back, or the queue has gone."""
        self._lost_at = 0.0
        self._told_at = float("-inf")
        self._is_told = False

    def found(self) -> None:
        """A call was answered."""
        self._tally.is_connected = True
        if self.is_lost:
            self.is_lost = False
            self.on_doubt()
            if self._is_told:
                self._is_told = False
                self._journal.info("server_is_back")

    def lost(self, error: QueueberError) -> None:
        """A call got no answer, or was refused for now."""
        self._tally.is_connected = False
        now = asyncio.get_running_loop().time()
        if not self.is_lost:
            self.is_lost = True
            self._lost_at = now
        if not self._is_told and now > self._told_at + _REPEAT_SECONDS:
            self._is_told = True
            self._told_at = now
            self._journal.warning("server_is_away", reason=str(error), action="trying on")

    async def pause(self) -> None:
        """Before the next call: the longer it has been lost, the longer."""
        lost_seconds = asyncio.get_running_loop().time() - self._lost_at
        seconds = min(max(lost_seconds / 4, _PAUSE_SECONDS_MIN), _PAUSE_SECONDS_MAX)
        await asyncio.sleep(seconds * uniform(0.5, 1.0))
