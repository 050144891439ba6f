"""What a client's callback has got and a consumer has not taken yet."""

import asyncio
from collections import deque
from typing import Generic, TypeVar

from bench.peers.peer import WAIT_SECONDS

MessageT = TypeVar("MessageT")


class Arrivals(Generic[MessageT]):
    def __init__(self) -> None:
        self._waiting: deque[MessageT] = deque()
        self._changed = asyncio.Event()

    def __len__(self) -> int:
        return len(self._waiting)

    def put(self, message: MessageT) -> None:
        self._waiting.append(message)
        self._changed.set()

    async def wait_for_room(self, most: int) -> None:
        """Until fewer than `most` are waiting."""
        while len(self._waiting) >= most:
            self._changed.clear()
            await self._changed.wait()

    async def take(self, most: int) -> list[MessageT]:
        """What is there, at most so many; waits a moment for the first."""
        waiting = self._waiting
        if not waiting:
            self._changed.clear()
            try:
                async with asyncio.timeout(WAIT_SECONDS):
                    await self._changed.wait()
            except TimeoutError:
                return []
        taken = [waiting.popleft() for _ in range(min(most, len(waiting)))]
        self._changed.set()
        return taken
