"""A partition that a tail follows: where it is, and what comes next."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

from queueber.client import AsyncTopic, MessagePage
from queueber.limits import KIB
from queueber.model import Column, Position, Start

_PAGE_BYTES = 64 * KIB
"""A tail holds one page, whatever else waits for it."""
_NOT_NEEDED = (Column.CONTENTS, Column.KEYS, Column.ATTRIBUTES)


@dataclass(slots=True)
class Followed:
    partition: int
    offset: int
    """The next one."""
    is_over: bool = False
    """Whether the topic is closed, and all was sent."""
    missed: int = 0
    """Messages that were deleted before they could be sent, since this was last told."""

    async def wait(self, topic: AsyncTopic, seconds: float) -> bool:
        """Until there is a message, which is not read yet; False if none came."""
        page = await topic.read(
            self.partition, start=self._next, limit=1, without=_NOT_NEEDED, wait=seconds
        )
        self.is_over = page.is_closed and page.is_at_end and not page
        return bool(page)

    async def read(self, topic: AsyncTopic, messages_max: int, seconds: float) -> MessagePage:
        """A small page, and go behind it."""
        page = await topic.read(
            self.partition, start=self._next, limit=messages_max, bytes=_PAGE_BYTES, wait=seconds
        )
        self.missed += page.missed
        self.offset = page.next_offset
        self.is_over = page.is_closed and page.is_at_end
        return page

    @property
    def _next(self) -> Position:
        return Position(Start.OFFSET, self.offset, moves=True)


async def begin(
    topic: AsyncTopic, partitions: list[int], position: Position, resumed: Mapping[int, int]
) -> list[Followed]:
    """Find where each partition begins; an offset that is not there is an error."""

    async def find(partition: int) -> Followed:
        start = position
        if resumed:
            # A partition that the caller did not follow before has been added since.
            start = Position(Start.OFFSET, resumed.get(partition, 0), moves=True)
        page = await topic.read(partition, start=start, limit=1, without=_NOT_NEEDED)
        offset = page[0].offset if page else page.next_offset
        is_over = page.is_closed and not page
        return Followed(partition, offset, is_over, page.missed)

    return list(await asyncio.gather(*map(find, partitions)))
