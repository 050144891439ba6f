"""The hub: one call of the server waits for all readers at a place, and ends with the last."""

import asyncio
from collections.abc import Callable, Coroutine
from functools import wraps
from types import SimpleNamespace
from typing import Any, cast

import pytest

from queueber.errors import NotFound
from queueber.gateway.bounds import Bounds
from queueber.gateway.problems import Problem
from queueber.gateway.streams.found import Found
from queueber.gateway.streams.live.hub import Hub

CLIENT, OTHER = cast(Any, object()), cast(Any, object())


class Topic:
    """Answers a read when it is told to."""

    def __init__(self) -> None:
        self.asked: list[asyncio.Future[Any]] = []

    async def read(self, _: int, **__: object) -> Any:
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self.asked.append(answer)
        return await answer


def page(count: int, *, closed: bool = False) -> Any:
    return SimpleNamespace(
        columns=SimpleNamespace(payloads=[b"1"] * count, count=count),
        next_offset=5 + count,
        is_at_end=True,
        is_closed=closed,
        content_type="application/json",
        origin=3,
        number=4,
    )


def bounds(waits: int = 10) -> Bounds:
    return Bounds(requests_max=10, waits_max=waits, bodies_bytes_max=10, answers_bytes_max=10)


AT = Found(page(0), 5)


def run(test: Callable[[], Coroutine[Any, Any, None]]) -> Callable[[], None]:
    """The test, on a loop of its own."""

    @wraps(test)
    def run_test() -> None:
        asyncio.run(test())

    return run_test


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


@run
async def test_many_readers_are_one_call_and_get_one_object() -> None:
    hub, topic = Hub(bounds()), Topic()
    readers = [
        asyncio.ensure_future(hub.next(CLIENT, cast(Any, topic), "a", AT, 10)) for _ in range(100)
    ]
    await settle()
    assert (len(topic.asked), hub.calls) == (1, 1)

    topic.asked[0].set_result(page(1))
    found = await asyncio.gather(*readers)

    assert len({id(each) for each in found}) == 1
    assert found[0] is not None
    assert found[0].events(7) is found[0].events(7)
    assert hub.calls == 0


@run
async def test_readers_of_another_caller_stream_or_place_have_a_call_of_their_own() -> None:
    hub, topic = Hub(bounds()), Topic()
    further = Found(page(1), 5)

    waiting = [
        asyncio.ensure_future(hub.next(client, cast(Any, topic), path, at, 10))
        for client, path, at in [
            (CLIENT, "a", AT), (OTHER, "a", AT), (CLIENT, "b", AT), (CLIENT, "a", further)
        ]
    ]  # fmt: skip
    await settle()

    assert (len(topic.asked), hub.calls) == (4, 4)
    for each in waiting:
        each.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)


@run
async def test_the_call_ends_with_the_last_reader() -> None:
    limits = bounds()
    hub, topic = Hub(limits), Topic()
    readers = [
        asyncio.ensure_future(hub.next(CLIENT, cast(Any, topic), "a", AT, 10)) for _ in range(3)
    ]
    await settle()
    assert limits.waits.used == 1

    for each in readers[:2]:
        each.cancel()
    await settle()
    assert not topic.asked[0].cancelled()
    readers[2].cancel()
    await settle()

    assert topic.asked[0].cancelled()
    assert (hub.calls, limits.waits.used) == (0, 0)


@run
async def test_a_reader_whose_time_is_over_leaves_the_others() -> None:
    hub, topic = Hub(bounds()), Topic()
    staying = asyncio.ensure_future(hub.next(CLIENT, cast(Any, topic), "a", AT, 10))

    assert await hub.next(CLIENT, cast(Any, topic), "a", AT, 0.01) is None
    topic.asked[0].set_result(page(1))

    found = await staying
    assert found is not None
    assert found.body == b"[1]"


@run
async def test_every_reader_gets_the_error() -> None:
    hub, topic = Hub(bounds()), Topic()
    readers = [
        asyncio.ensure_future(hub.next(CLIENT, cast(Any, topic), "a", AT, 10)) for _ in range(3)
    ]
    await settle()

    topic.asked[0].set_exception(NotFound("it is gone"))
    found = await asyncio.gather(*readers, return_exceptions=True)

    assert [type(each) for each in found] == [NotFound] * 3
    assert hub.calls == 0


@run
async def test_a_wait_that_brought_nothing_goes_on_and_a_closed_stream_ends_it() -> None:
    hub, topic = Hub(bounds()), Topic()
    reading = asyncio.ensure_future(hub.next(CLIENT, cast(Any, topic), "a", AT, 10))
    await settle()

    topic.asked[0].set_result(page(0))
    await settle()
    topic.asked[1].set_result(page(0, closed=True))

    found = await reading
    assert found is not None
    assert found.is_closed


@run
async def test_calls_that_wait_are_bounded_and_readers_of_one_are_not() -> None:
    hub, topic = Hub(bounds(waits=1)), Topic()
    first = asyncio.ensure_future(hub.next(CLIENT, cast(Any, topic), "a", AT, 10))
    second = asyncio.ensure_future(hub.next(CLIENT, cast(Any, topic), "a", AT, 10))
    await settle()

    with pytest.raises(Problem, match="503"):
        await hub.next(CLIENT, cast(Any, topic), "b", AT, 10)

    assert len(topic.asked) == 1
    for each in (first, second):
        each.cancel()
    await settle()
    assert hub.calls == 0


@run
async def test_readers_do_not_go_on_in_another_stream_of_the_same_path() -> None:
    hub, topic = Hub(bounds()), Topic()
    reader = asyncio.ensure_future(hub.next(CLIENT, cast(Any, topic), "a", AT, 10))
    await settle()

    other = page(1)
    other.number = 9
    topic.asked[0].set_result(other)

    with pytest.raises(Problem, match="another one has its path"):
        await reader
    assert hub.calls == 0
