"""The way in: polls ahead while there is room, and knows when nothing more is to come.

The queue is created at the first contact. One that is deleted later is waited for: whoever deleted
it may not want it back, and would have to give it its settings.
"""

import asyncio
import contextlib
from collections.abc import Callable

from queueber.client import AsyncClient, AsyncLease
from queueber.errors import (
    InvalidArgument,
    NotFound,
    PermissionDenied,
    QueueberError,
    Unauthenticated,
)
from queueber.worker.contact import Contact, Journal
from queueber.worker.holding import WorkItem
from queueber.worker.settings import Settings
from queueber.worker.tally import Tally
from queueber.worker.work_queue import WorkQueue

_POLL_WAIT_SECONDS = 2.0
"""Short, because only an answer tells that the server is still there."""

_EMPTY_LOOK_SECONDS = 0.2
_UNREPORTED_MAX = 10_000
"""Outcomes that may wait for the server before the pool leases more."""

_GONE_SECONDS = 1.0
"""How long until a queue that was deleted is looked for again."""

_FATAL = (InvalidArgument, PermissionDenied, Unauthenticated)
"""What no repeating helps."""


class Intake:
    def __init__(
        self,
        client: AsyncClient,
        queue: WorkQueue,
        settings: Settings,
        contact: Contact,
        tally: Tally,
        journal: Journal,
        items: set[WorkItem],
        take: Callable[[AsyncLease], None],
        *,
        is_until_empty: bool,
    ) -> None:
        """`items` are those that wait or are with handlers; `take` is given each lease."""
        self._client = client
        self._queue = queue
        self._lease_seconds = settings.lease_seconds
        self._contact = contact
        self._tally = tally
        self._journal = journal
        self._items = items
        self._take = take
        self._is_until_empty = is_until_empty
        self._limit = settings.concurrency + settings.prefetch
        # Half of what is held ahead may be used up before the next poll, so that polls are few.
        self._room_wanted = max(1, settings.prefetch // 2)
        self._asked = 0
        """Items that polls under way may bring."""
        self._is_gone = False
        """The queue was deleted."""
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
        self._count_max = await self._make_contact()
        polls = [asyncio.ensure_future(self._poll_on()), asyncio.ensure_future(self._poll_beside())]
        try:
            ended, _ = await asyncio.wait(polls, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for poll in polls:
                poll.cancel()
            await asyncio.wait(polls)
        for poll in ended:
            poll.result()

    async def _make_contact(self) -> int:
        """Have the queue created unless it is there; returns how much a poll may ask for."""
        while True:
            try:
                await self._client.queue(self._queue.name).stats()
                count_max = (await self._client.server()).poll_items_max
            except _FATAL:
                raise
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
            lease = await self._queue.poll(
                count, lease=self._lease_seconds, wait=wait, release_on_disconnect=True
            )
        except _FATAL:
            raise
        except NotFound:
            return await self._miss_queue()
        except QueueberError as error:
            self._contact.lost(error)
            await self._contact.pause()
            return True
        finally:
            self._asked -= count
            self.look()
        self._contact.found()
        if self._is_gone:
            self._is_gone = False
            self._journal.info("queue_is_back", queue=self._queue.name)
        # A queue where items have killed their processes gives out fewer at a time.
        if len(lease) == count:
            self._is_plenty.set()
        else:
            self._is_plenty.clear()
        if lease:
            self._take(lease)
        return bool(lease)

    async def _miss_queue(self) -> bool:
        """Pause before the next poll. False: nothing is ready where there is no queue."""
        self._contact.found()
        self._contact.on_doubt()
        self._is_plenty.clear()
        if self._is_until_empty:
            return False
        if not self._is_gone:
            self._is_gone = True
            self._journal.warning(
                "queue_is_gone", queue=self._queue.name, action="waiting until it is created again"
            )
        await asyncio.sleep(_GONE_SECONDS)
        return True

    def _room(self) -> int:
        unreported = self._tally.unreported
        return min(self._limit - len(self._items), _UNREPORTED_MAX - unreported) - self._asked
