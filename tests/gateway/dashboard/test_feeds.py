"""Feeds: one look a second for all viewers, and what each has not seen yet."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec
import pytest

from queueber.errors import NotFound
from queueber.gateway.dashboard import feeds as feeds_module
from queueber.gateway.dashboard.feeds import Change, Feed, Feeds


class Row(msgspec.Struct, array_like=True, frozen=True):
    name: str
    number: int


@dataclass
class Source:
    """What a feed looks at."""

    rows: dict[str, int] = field(default_factory=dict)
    looks: int = 0
    error: Exception | None = None

    async def look(self) -> Mapping[str, Row]:
        self.looks += 1
        if self.error is not None:
            raise self.error
        return {name: Row(name, number) for name, number in self.rows.items()}


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feeds_module, "SECONDS", 0.002)
    monkeypatch.setattr(feeds_module, "_PAUSE_AFTER_ERROR", 0.002)


async def looked(feed: Feed, source: Source) -> int:
    """The version after one more whole look."""
    looks = source.looks
    while source.looks < looks + 2:  # noqa: ASYNC110  the feed's own time passes
        await asyncio.sleep(0.001)
    return feed.version


def test_viewers_of_a_subject_share_one_feed_that_ends_with_the_last() -> None:
    async def main() -> None:
        feeds, source = Feeds(), Source({"a": 1})
        one, two = asyncio.Event(), asyncio.Event()
        with feeds.viewed("key", source.look, one) as feed:
            with feeds.viewed("key", source.look, two) as same:
                assert same is feed
                await looked(feed, source)
                assert one.is_set()
                assert two.is_set()
            assert len(feeds) == 1
        assert len(feeds) == 0
        await asyncio.sleep(0.01)
        looks = source.looks
        await asyncio.sleep(0.02)
        assert source.looks == looks

    asyncio.run(main())


def test_a_viewer_gets_all_rows_first_and_then_those_that_changed() -> None:
    async def main() -> None:
        feeds, source = Feeds(), Source({"a": 1, "b": 2})
        with feeds.viewed("key", source.look, asyncio.Event()) as feed:
            first = await looked(feed, source)
            assert feed.since(0) == Change(("name", "number"), True, [Row("a", 1), Row("b", 2)])
            assert feed.since(first) is None

            source.rows["b"] = 3
            second = await looked(feed, source)
            assert feed.since(first) == Change(("name", "number"), False, [Row("b", 3)])
            assert feed.since(second) is None

            del source.rows["a"]
            third = await looked(feed, source)
            assert feed.since(second) == Change(("name", "number"), True, [Row("b", 3)])

            source.rows.clear()
            await looked(feed, source)
            assert feed.since(third) == Change((), True, [])

    asyncio.run(main())


@pytest.mark.parametrize(
    ("error", "told"),
    [(NotFound("it is not there"), (404, "NOT_FOUND")), (KeyError("a bug"), (500, "INTERNAL"))],
)
def test_a_look_that_fails_is_told_and_repeated(error: Exception, told: tuple[int, str]) -> None:
    async def main() -> None:
        feeds, source = Feeds(), Source({"a": 1}, error=error)
        with feeds.viewed("key", source.look, asyncio.Event()) as feed:
            await looked(feed, source)
            assert feed.problem is not None
            assert (feed.problem.status, feed.problem.code) == told

            source.error = None
            await looked(feed, source)
            assert feed.problem is None
            assert feed.since(0) == Change(("name", "number"), True, [Row("a", 1)])

    asyncio.run(main())


def test_that_there_are_no_rows_is_told_once() -> None:
    async def main() -> None:
        feeds, source = Feeds(), Source()
        with feeds.viewed("key", source.look, asyncio.Event()) as feed:
            first = await looked(feed, source)
            assert feed.since(0) == Change((), True, [])
            await looked(feed, source)
            assert feed.since(first) is None

    asyncio.run(main())
