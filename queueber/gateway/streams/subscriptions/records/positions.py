"""Places in streams: where one ends, and up to where a subscriber has acknowledged it."""

import asyncio
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from queueber.client import AsyncClient
from queueber.errors import NotFound
from queueber.gateway.streams.tokens import split_token, token

_ASKED_AT_A_TIME = 32


class Position(NamedTuple):
    """Behind so many messages of a stream. A stream that was deleted and created again has another
    origin, and so do its positions."""

    origin: int
    offset: int

    @property
    def token(self) -> str:
        """As callers see it: tokens of one stream compare as their offsets do."""
        return token(self.origin, self.offset).decode()


NOWHERE = Position(0, 0)
"""In a stream that does not exist."""


class Tail(NamedTuple):
    """How far a stream reaches."""

    end: Position
    start: Position
    """Where its own messages begin: those before are of the stream that it is a fork of."""


def to_position(text: str) -> Position | None:
    """None: it is not a token of ours."""
    found = split_token(text)
    return None if found is None else Position(*found)


async def tail_of(client: AsyncClient, path: str) -> Tail | None:
    """None: there is no such stream. A topic with several partitions is none, either."""
    try:
        info = await client.describe_topic(path)
    except NotFound:
        return None
    if info.is_deleted or len(info.partitions) != 1:
        return None
    end, start = info.partitions[0].next_offset, info.fork_offset
    return Tail(Position(info.origin, end), Position(info.origin, start))


async def tails_of(client: AsyncClient, paths: Iterable[str]) -> Mapping[str, Tail | None]:
    """The tails of streams, some of which are asked for at a time."""
    asked = asyncio.Semaphore(_ASKED_AT_A_TIME)

    async def ask(path: str) -> tuple[str, Tail | None]:
        async with asked:
            return path, await tail_of(client, path)

    return dict(await asyncio.gather(*map(ask, paths)))
