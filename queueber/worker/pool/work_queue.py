"""The calls that a pool makes about items. All of them are here."""

from collections.abc import Callable, Sequence
from typing import Protocol

from queueber.client.async_queue import AsyncQueue
from queueber.client.lease import AsyncLease
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


class ClientQueue:
    """A queue of the client as a pool calls it."""

    def __init__(self, queue: AsyncQueue) -> None:
        self._queue = queue
        self.name = queue.name

    async def poll(
        self, count: int, /, *, lease: float, wait: float, release_on_disconnect: bool
    ) -> AsyncLease:
        return await self._queue.poll(count, lease=lease, wait=wait, bound=release_on_disconnect)

    async def extend(self, seconds: float, /, *, lease: bytes) -> bool:
        return await self._queue.extend(lease, seconds)

    async def complete(
        self, ids: Sequence[bytes], results: Sequence[bytes], /, *, lease: bytes
    ) -> list[bool]:
        return await self._queue.complete(ids, results, lease)

    async def fail(
        self, ids: Sequence[bytes], error: Sequence[str], /, *, lease: bytes, delay: float | None
    ) -> list[FailOutcome]:
        return await self._queue.fail(ids, error, lease, delay=delay)

    async def release(self, ids: Sequence[bytes], /, *, lease: bytes) -> list[bool]:
        return await self._queue.release(ids, lease)
