"""The hub: readers that wait at one offset of one stream share one waiting call of the server.

Readers share only with readers of the same client, which is one credential: so nobody gets what
somebody else may read. What came is given to all of them as one object, whose bytes are made once.
"""

import asyncio
from typing import Any, cast

from queueber.client import AsyncClient, AsyncTopic
from queueber.gateway.bounds import Bounds
from queueber.gateway.calls import Call
from queueber.gateway.streams.found import EVENT_BYTES, Found, read

_STATE = "stream_hub"
_WAIT_SECONDS = 3600.0
"""How long a call waits. The client divides it into shorter ones."""

_READERS_A_TURN = 32
"""Readers that are woken in one turn of the loop: to send to ten thousand takes a second."""

_Key = tuple[AsyncClient, str, int, int]


class _Waiting:
    """The readers at one place."""

    __slots__ = ("readers", "task")

    def __init__(self) -> None:
        self.readers: set[asyncio.Future[Found]] = set()
        self.task: asyncio.Task[None] | None = None


class Hub:
    """Of one gateway process; `hub_of` finds it."""

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds
        self._places: dict[_Key, _Waiting] = {}

    @property
    def calls(self) -> int:
        """How many calls of the server wait."""
        return len(self._places)

    async def next(
        self, client: AsyncClient, topic: AsyncTopic, path: str, at: Found, seconds: float
    ) -> Found | None:
        """What comes after `at`, which reached the tail; None: nothing, for so long."""
        key = client, path, at.number, at.next_offset
        waiting = self._places.get(key)
        if waiting is None:
            # The bound of waits is one of calls: the server has one, too.
            self._bounds.waits.take()
            waiting = self._places[key] = _Waiting()
            waiting.task = asyncio.ensure_future(self._wait(key, waiting, topic, at))
        reader = asyncio.get_running_loop().create_future()
        waiting.readers.add(reader)
        try:
            async with asyncio.timeout(seconds):
                return cast(Found, await reader)
        except TimeoutError:
            return None
        finally:
            waiting.readers.discard(reader)
            if not waiting.readers:
                self._leave(key, waiting)

    async def _wait(self, key: _Key, waiting: _Waiting, topic: AsyncTopic, at: Found) -> None:
        try:
            found = await self._read(topic, at)
        except Exception as error:  # noqa: BLE001  every reader gets it, and answers its caller
            self._leave(key, waiting)
            await _tell(waiting.readers, error)
            return
        self._leave(key, waiting)
        await _tell(waiting.readers, found)

    async def _read(self, topic: AsyncTopic, at: Found) -> Found:
        found = at
        while True:
            came = await read(topic, found.after, bytes_max=EVENT_BYTES, wait_seconds=_WAIT_SECONDS)
            found = came.same_stream_as(at)
            if found.count or found.is_closed:
                return found

    def _leave(self, key: _Key, waiting: _Waiting) -> None:
        """The next reader at this place waits with a call of its own."""
        if self._places.get(key) is waiting:
            del self._places[key]
            self._bounds.waits.give_back()
            if waiting.task is not None and waiting.task is not asyncio.current_task():
                waiting.task.cancel()


async def _tell(readers: set["asyncio.Future[Found]"], came: Found | Exception) -> None:
    """Wake some readers in each turn of the loop: they send then, and other requests come, too."""
    for at, reader in enumerate(list(readers), 1):
        if reader.done():
            continue
        if isinstance(came, Exception):
            reader.set_exception(came)
        else:
            reader.set_result(came)
        if at % _READERS_A_TURN == 0:
            await asyncio.sleep(0)


def hub_of(call: Call[Any, Any]) -> Hub:
    hub = call.state.get(_STATE)
    if hub is None:
        hub = call.state[_STATE] = Hub(call.bounds)
    assert isinstance(hub, Hub)
    return hub
