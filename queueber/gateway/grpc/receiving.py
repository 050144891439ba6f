"""Receiving messages of callers: how long each may take, and how many may be late.

gRPC keeps what it has of a message until the rest has come, and does not tell how much that is. A
small message comes with the head of its call. So the gateway lets few be late for long, and cuts
the one that is late for longest when there are more.
"""

import asyncio
from typing import Any

from queueber.errors import InvalidArgument, Unavailable
from queueber.limits import SECOND_MS

LATE_SECONDS = 1.0
LATE_MAX = 32
"""Messages that take longer than that, at a time: 160 MiB, if each has the largest size."""
_WATCH_SECONDS = 0.5


class Receiving:
    """The first messages of calls that are being received in one process.

    One task looks at all of them, which costs less than a timer for each.
    """

    def __init__(self, timeout_ms: int) -> None:
        self._timeout = timeout_ms / SECOND_MS
        self._begun: dict[asyncio.Task[Any], float] = {}
        """In the order in which they began."""
        self._cut: set[asyncio.Task[Any]] = set()

    async def first(self, context: Any, end: object) -> bytes:
        """The first message of a call, whose `end` is what gRPC says at the end of its messages."""
        task = asyncio.current_task()
        assert task is not None, "calls are tasks"
        self._begun[task] = asyncio.get_running_loop().time()
        try:
            found: bytes = await context.read()
        except asyncio.CancelledError:
            if task not in self._cut:
                raise  # the caller has gone
            task.uncancel()
            raise Unavailable("request: it took too long to send; retry") from None
        finally:
            del self._begun[task]
            self._cut.discard(task)
        if found is end:
            raise InvalidArgument("request: there is none; send one message")
        return found

    async def run(self) -> None:
        """Cut those that are late, until it is cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(_WATCH_SECONDS)
            now = loop.time()
            late = [each for each, begun in self._begun.items() if now - begun > LATE_SECONDS]
            surplus = late[: max(0, len(late) - LATE_MAX)]
            over = [each for each, begun in self._begun.items() if now - begun > self._timeout]
            for task in {*surplus, *over}:
                self._cut.add(task)
                task.cancel()
