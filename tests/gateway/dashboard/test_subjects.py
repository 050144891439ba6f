"""What is asked of the server for a page of the dashboard."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any, cast

from queueber.errors import NotFound
from queueber.gateway.dashboard.subjects import TOPICS_SHOWN, topics


class ManyTopics:
    """A server with many topics, which are all gone when one looks."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []
        self.given = 0

    async def topics(self, prefix: str = "", *, after: str = "") -> AsyncIterator[str]:
        self.asked.append((prefix, after))
        while self.given < 1000:
            self.given += 1
            yield f"{after}{self.given:06}"

    def topic(self, name: str, **_: object) -> Any:
        raise NotFound(name)


def test_a_page_of_topics_begins_where_the_last_one_ended() -> None:
    server = ManyTopics()

    async def look() -> object:
        try:
            return await topics(cast(Any, server), "a/", "a/5")()
        except NotFound:
            return None

    asyncio.run(look())

    assert server.asked == [("a/", "a/5")]
    assert server.given == TOPICS_SHOWN
