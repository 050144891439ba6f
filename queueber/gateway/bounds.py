"""Bounds of one gateway process: requests under way, waits, and bytes of bodies."""

import asyncio
import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from queueber.gateway.problems import too_busy
from queueber.gateway.unread import UnreadAnswers

_LARGE_ANSWERS = 1
"""Answers of megabytes that are asked for and encoded at a time: those of others would come after
these, over the connection to the server that they share."""

_READS = 4
"""Reads of what is in streams that are asked for at a time, of up to some megabytes each."""

_OPENINGS = 4
"""Streams of gRPC that are opened at a time: each asks the server several times."""

_FIRST_DELIVERIES = 1
"""Of these, those that wait for their first messages, of which one may have megabytes."""

STOPPING = "the gateway is stopping; retry"


@dataclass(slots=True)
class Bound:
    """How much of something there may be at one time."""

    noun: str
    limit: int
    used: int = 0

    def take(self, amount: int = 1) -> None:
        """Take so much, or raise a `Problem` that asks to come back later."""
        if self.used + amount > self.limit:
            raise too_busy(f"the gateway is busy: {self.limit} {self.noun}; retry")
        self.used += amount

    def give_back(self, amount: int = 1) -> None:
        self.used -= amount

    @contextlib.contextmanager
    def taken(self, amount: int = 1) -> Iterator[None]:
        self.take(amount)
        try:
            yield
        finally:
            self.give_back(amount)


class Bounds:
    """The bounds that requests share. Those of connections are in `protocol.py`."""

    def __init__(
        self, *, requests_max: int, waits_max: int, bodies_bytes_max: int, answers_bytes_max: int
    ) -> None:
        self.requests = Bound("requests are under way", requests_max)
        """Without those that wait."""
        self.waits = Bound("requests wait", waits_max)
        self.bodies = Bound("bytes of bodies are being handled", bodies_bytes_max)
        self.unread = UnreadAnswers(answers_bytes_max)
        self.large_answers = asyncio.Semaphore(_LARGE_ANSWERS)
        self.reads = asyncio.Semaphore(_READS)
        self.openings = asyncio.Semaphore(_OPENINGS)
        self.first_deliveries = asyncio.Semaphore(_FIRST_DELIVERIES)
        self._waiting: set[asyncio.Future[Any]] = set()
        self.is_stopping = False

    @contextlib.contextmanager
    def waiting(self, awaited: "asyncio.Future[Any]", *, counts: bool = True) -> Iterator[None]:
        """The request waits: it counts as one that waits, and no more as one under way.

        One that shares the wait of others does not count: the limit of connections is its bound.
        """
        amount = 1 if counts else 0
        if self.is_stopping:
            awaited.cancel()
            raise too_busy(STOPPING)
        try:
            self.waits.take(amount)
        except BaseException:
            awaited.cancel()
            raise
        self._waiting.add(awaited)
        self.requests.give_back()
        try:
            yield
        finally:
            # Not refused: it was admitted before, and has only its answer to send.
            self.requests.used += 1
            self.waits.give_back(amount)
            self._waiting.discard(awaited)

    def stop_waiting(self) -> None:
        """The gateway stops: requests that wait are answered now."""
        self.is_stopping = True
        for awaited in self._waiting:
            awaited.cancel()
