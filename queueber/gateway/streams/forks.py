"""Where a fork begins: at an offset, or so many bytes or values behind it."""

from dataclasses import dataclass

from queueber.client import AsyncClient
from queueber.gateway.problems import Problem, invalid
from queueber.gateway.streams.content import is_json
from queueber.gateway.streams.headers import ForkHeaders
from queueber.gateway.streams.stream_info import tail_of, type_of
from queueber.limits import PAYLOAD_BYTES_MAX
from queueber.model import Column, TopicInfo

_NOT_NEEDED = (Column.KEYS, Column.ATTRIBUTES)


@dataclass(frozen=True, slots=True)
class ForkPoint:
    source: str
    offset: int
    """The fork shares the messages before it."""
    cut_bytes: int = 0
    """So many bytes of the message at the offset come next; 0: none."""
    is_given: bool = True
    """Whether the caller said where; else it is where the source ends."""


async def find_fork_point(client: AsyncClient, source: TopicInfo, asked: ForkHeaders) -> ForkPoint:
    """Raises a `Problem` if the place is not in the source."""
    if asked.at is None:
        return ForkPoint(asked.source, tail_of(source), is_given=False)
    offset, tail = asked.at.offset, tail_of(source)
    if asked.at.origin not in (0, source.origin):
        raise invalid(f"stream-fork-offset: it is none of {asked.source}")
    if offset > tail:
        raise invalid(f"stream-fork-offset: it is behind the end of {asked.source}")
    if not asked.further:
        return ForkPoint(asked.source, offset)
    if is_json(type_of(source)):
        if offset + asked.further > tail:
            raise _too_far(asked, tail - offset, "values")
        return ForkPoint(asked.source, offset + asked.further)
    return await _cut(client, asked, offset, tail)


async def _cut(client: AsyncClient, asked: ForkHeaders, offset: int, tail: int) -> ForkPoint:
    """Find the message in which the cut falls: the next one, unless an append was so large that it
    is several."""
    topic = client.topic(asked.source, must_exist=True)
    at, left = offset, asked.further
    while at < tail:
        page = await topic.read(0, start=at, limit=1, without=_NOT_NEEDED)
        if not page:
            break
        size = len(page.payloads[0])
        if left < size:
            return ForkPoint(asked.source, at, left)
        left, at = left - size, page.next_offset
        if not left:
            return ForkPoint(asked.source, at)
        if size < PAYLOAD_BYTES_MAX - 3:  # the append ends here
            break
    raise _too_far(asked, asked.further - left, "bytes")


def _too_far(asked: ForkHeaders, limit: int, what: str) -> Problem:
    return invalid(
        f"stream-fork-sub-offset: it is {asked.further}; behind the offset are {limit} {what}"
    )
