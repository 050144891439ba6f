"""The calls that a pool makes about items. All of them are here."""

from collections.abc import Callable, Sequence
from typing import Protocol

from queueber.client import AsyncLease, AsyncQueue
from queueber.model import FailOutcome


class WorkQueue(Protocol):
    """The part of a queue that a pool uses. Durations are seconds."""

    @property
    def name(self) -> str: ...

    async def poll(
        self, count: int, /, *, lease: float, wait: float, release_on_disconnect: bool
    ) -> AsyncLease: ...

    async def extend(self, seconds: float, /, *, lease: bytes) -> bool: ...

    async def complete(
        self, ids: Sequence[bytes], results: Sequence[bytes], /, *, lease: bytes
    ) -> list[bool]: ...

    async def fail(
        self, ids: Sequence[bytes], error: Sequence[str], /, *, lease: bytes, delay: float | None
    ) -> list[FailOutcome]: ...

    async def release(self, ids: Sequence[bytes], /, *, lease: bytes) -> list[bool]: ...


WrapQueue = Callable[[AsyncQueue], WorkQueue]
"""Puts something between a pool and its queue, such as a recorder of calls."""
