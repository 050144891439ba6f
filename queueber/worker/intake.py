"""The way in: polls ahead while there is room, and knows when nothing more is to come."""

import asyncio
import contextlib
from collections.abc import Callable

from queueber.client.async_client import AsyncClient
from queueber.client.lease import AsyncLease
from queueber.errors import InvalidArgument, PermissionDenied, QueueberError, Unauthenticated
from queueber.worker.contact import Contact
from queueber.worker.holding import WorkItem
from queueber.worker.settings import Settings
from queueber.worker.tally import Tally

_POLL_WAIT_SECONDS = 2.0
"""Short, because only an answer tells that the server is still there."""

_EMPTY_LOOK_SECONDS = 0.2
_UNREPORTED_MAX = 10_000
"""Outcomes that may wait for the server before the pool leases more."""

_FATAL = (InvalidArgument, PermissionDenied, Unauthenticated)
"""What no repeating helps."""


class Intake:
    def __init__(
        self,
        client: AsyncClient,
        settings: Settings,
        contact: Contact,
        tally: Tally,
        items: set[WorkItem],
        take: Callable[[AsyncLease], None],
        *,
        is_until_empty: bool,
    ) -> None:
        """`items` are those that wait or are with handlers; `take` is given each lease."""
        self._client = client
        self._queue = client.queue(settings.queue)
        self._lease_seconds = settings.lease_seconds
        self._contact = contact
        self._tally = tally
        self._items = items
        self._take = take
        self._is_until_empty = is_until_empty
        self._limit = settings.concurrency + settings.prefetch
        # Half of what is held ahead may be used up before the next poll, so that polls are few.
        self._room_wanted = max(1, settings.prefetch // 2)
        self._asked = 0
        """Items that polls under way may bring."""
        self._has_room = asyncio.Event()
        self._is_idle = asyncio.Event()
        self._is_plenty = asyncio.Event()

    def look(self) -> None:
        """Something has changed: wake those who wait for room, or for the last item to end."""
        if self._room() >= self._room_wanted:
            self._has_room.set()
        if self._items or self._tally.unreported or self._asked:
            self._is_idle.clear()
        else:
            self._is_idle.set()

    async def run(self) -> None:
        """Returns only when the queue is to be worked until it is empty, and is."""
        self._count_max = await self._learn_count_max()
        polls = [asyncio.ensure_future(self._poll_on()), asyncio.ensure_future(self._poll_beside())]
        try:
            ended, _ = await asyncio.wait(polls, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for poll in polls:
                poll.cancel()
            await asyncio.wait(polls)
        for poll in ended:
            poll.result()

    async def _learn_count_max(self) -> int:
        while True:
            try:
                count_max = (await self._client.server()).poll_items_max
            except QueueberError as error:
                self._contact.lost(error)
                await self._contact.pause()
            else:
                self._contact.found()
                return count_max

    async def _poll_on(self) -> None:
        while True:
            self.look()
            was_idle = self._is_idle.is_set()
            is_urgent = self._is_until_empty or self._contact.is_lost
            if await self._poll(0 if is_urgent else _POLL_WAIT_SECONDS):
                continue
            if self._is_until_empty and was_idle:
                return
            if self._is_until_empty:
                # What handlers have now may come back, or bring more.
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(_EMPTY_LOOK_SECONDS):
                        await self._is_idle.wait()

    async def _poll_beside(self) -> None:
        """While polls come back full, have a second one on its way."""
        while True:
            await self._is_plenty.wait()
            await self._poll(wait=0)

    async def _poll(self, wait: float) -> bool:
        """Lease as much as there is room for, once there is some. False: nothing is ready."""
        # Both polls wake up, but one may take all the room there is.
        while self._room() < self._room_wanted:
            self._has_room.clear()
            await self._has_room.wait()
        count = min(self._room(), self._count_max)
        self._asked += count
        try:
            lease = await self._queue.poll(count, lease=self._lease_seconds, wait=wait, bound=True)
        except _FATAL:
            raise
        except QueueberError as error:
            self._contact.lost(error)
            await self._contact.pause()
            return True
        finally:
            self._asked -= count
            self.look()
        self._contact.found()
        # A queue where items have killed their processes gives out fewer at a time.
        if len(lease) == count:
            self._is_plenty.set()
        else:
            self._is_plenty.clear()
        if lease:
            self._take(lease)
        return bool(lease)

    def _room(self) -> int:
        unreported = self._tally.unreported
        return min(self._limit - len(self._items), _UNREPORTED_MAX - unreported) - self._asked
