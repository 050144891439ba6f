"""What the statements of one call have leased, until its caller has the answer."""

import asyncio
from contextlib import suppress

from queueber.client import AsyncClient
from queueber.consuming import Consumed
from queueber.consuming.consume import release
from queueber.errors import QueueberError

_RELEASE_SECONDS = 5.0
"""The caller waits for its error no longer; a lease that is left ends by itself."""


class Held:
    """The windows of `CONSUME` with a group."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client
        self._windows: list[tuple[str, str, Consumed]] = []

    def add(self, topic: str, group: str, window: Consumed) -> None:
        self._windows.append((topic, group, window))

    async def give_back(self) -> None:
        """Let other consumers have them: nobody gets the answer that they were for.

        What was acknowledged meanwhile stays so.
        """
        windows, self._windows = self._windows, []
        with suppress(TimeoutError):
            async with asyncio.timeout(_RELEASE_SECONDS):
                for topic, group, window in windows:
                    with suppress(QueueberError):  # the topic or the group is gone, or the server
                        await release(self._client, topic, group, window)
