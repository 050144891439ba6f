"""What a pool asks of a queue."""

from collections.abc import Callable, Sequence
from typing import Protocol

from queueber.client import AsyncLease, AsyncQueue
from queueber.model import FailOutcome


class WorkQueue(Protocol):
    """As much of `AsyncQueue` as pools use: every call about items goes through it."""

    @property
    def name(self) -> str: ...

    async def poll(
        self, count: int, *, lease: float, wait: float, release_on_disconnect: bool
    ) -> AsyncLease: ...

    async def extend(self, seconds: float, *, lease: bytes) -> bool: ...

    async def complete(
        self, ids: Sequence[bytes], results: Sequence[bytes], *, lease: bytes
    ) -> list[bool]: ...

    async def fail(
        self, ids: Sequence[bytes], error: Sequence[str], *, lease: bytes, delay: float | None
    ) -> list[FailOutcome]: ...

    async def release(self, ids: Sequence[bytes], *, lease: bytes) -> list[bool]: ...


Watch = Callable[[AsyncQueue], WorkQueue]
"""Puts itself between a pool and its queue."""


def unwatched(queue: AsyncQueue) -> WorkQueue:
    return queue
