"""What counts as use of a topic that is deleted when nobody uses it, and what does not."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from queueber.errors import FailedPrecondition, NotFound
from queueber.limits import MINUTE_MS, SECOND_MS
from queueber.model import (
    Bounds,
    ForkAt,
    NewMessages,
    Position,
    Producer,
    Publication,
    Start,
    TopicConfig,
    TopicSettings,
)
from queueber.service.topic_handle import TopicHandle
from tests.support.service_rig import ServiceRig, on_service

Use = Callable[[ServiceRig, TopicHandle], Awaitable[object]]
CONFIG = TopicConfig(TopicSettings(ttl_ms=10 * SECOND_MS), content_type="text/plain")


async def made(rig: ServiceRig) -> TopicHandle:
    first = Publication("t", NewMessages([b"0"]))
    assert await rig.service.topics.create_topic("t", CONFIG, rig.session, first)
    return await rig.service.topics.open_topic("t", rig.session, must_exist=True)


def publishing(*payloads: bytes, **conditions: object) -> Use:
    def use(rig: ServiceRig, topic: TopicHandle) -> Awaitable[object]:
        publication = Publication("t", NewMessages(payloads), **conditions)  # type: ignore[arg-type]
        return rig.service.publishing.publish_to(topic, publication)

    return use


def reading(start: Start, *, goes_on: bool = False) -> Use:
    def use(rig: ServiceRig, topic: TopicHandle) -> Awaitable[object]:
        return rig.service.reads.read(topic, 0, Position(start), Bounds(), goes_on=goes_on)

    return use


USES: dict[str, Use] = {
    "a publish": publishing(b"1"),
    "a publish of a producer": publishing(b"1", producer=Producer("p", 0, 1)),
    "a close": publishing(closes=True),
    "a close by a producer": publishing(closes=True, producer=Producer("p", 0, 1)),
    "a read": reading(Start.EARLIEST),
    "a read at the end": reading(Start.LATEST),
}


@pytest.mark.parametrize("use", USES)
def test_use_lets_the_time_to_live_begin_again(use: str) -> None:
    @on_service()
    async def body(rig: ServiceRig) -> None:
        topic = await made(rig)
        rig.clock.advance(9 * SECOND_MS)
        await USES[use](rig, topic)
        rig.clock.advance(9 * SECOND_MS)
        info = await rig.service.topics.describe_topic("t", rig.session)
        assert info.expires_at_ms == rig.clock.now_ms() + SECOND_MS

    body()


async def describe(rig: ServiceRig, _: TopicHandle) -> None:
    await rig.service.topics.describe_topic("t", rig.session)


async def refused(rig: ServiceRig, topic: TopicHandle) -> None:
    with pytest.raises(FailedPrecondition):
        await publishing(b"1", content_type="text/html")(rig, topic)


@pytest.mark.parametrize(
    "call", [describe, refused, reading(Start.LATEST, goes_on=True)], ids=["describe", "refused",
    "goes on"],
)  # fmt: skip
def test_other_calls_are_no_use(call: Use) -> None:
    @on_service()
    async def body(rig: ServiceRig) -> None:
        topic = await made(rig)
        before = await rig.service.topics.describe_topic("t", rig.session)
        rig.clock.advance(9 * SECOND_MS)
        await call(rig, topic)
        after = await rig.service.topics.describe_topic("t", rig.session)
        assert after == before
        rig.clock.advance(SECOND_MS)
        with pytest.raises(NotFound):
            await rig.service.topics.describe_topic("t", rig.session)

    body()


@on_service()
async def test_a_read_that_waits_is_a_use_when_it_begins(rig: ServiceRig) -> None:
    topic = await made(rig)
    async with rig.sweeper():
        await asyncio.sleep(5)
        began_ms = rig.clock.now_ms()
        latest = Position(Start.LATEST)
        with pytest.raises(NotFound):
            await rig.service.reads.read(topic, 0, latest, Bounds(), wait_ms=MINUTE_MS)
        assert rig.clock.now_ms() - began_ms <= 11 * SECOND_MS


@on_service()
async def test_an_expired_topic_is_gone_for_every_call_before_it_is_swept(rig: ServiceRig) -> None:
    topic = await made(rig)
    rig.clock.advance(10 * SECOND_MS)
    topics = rig.service.topics
    calls: list[Callable[[], Awaitable[object]]] = [
        lambda: publishing(b"1")(rig, topic),
        lambda: reading(Start.EARLIEST)(rig, topic),
        lambda: topics.fork(topic, "fork", TopicConfig(partitions=0), ForkAt()),
        lambda: topics.describe_topic("t", rig.session),
    ]
    for call in calls:
        with pytest.raises(NotFound):
            await call()
    assert not await topics.delete_topic("t", rig.session)

    first = Publication("t", NewMessages([b"new"]), closes=True)
    published = await topics.create_topic("t", TopicConfig(), rig.session, first)
    assert published is not None
    assert (published.end_offset, published.is_closed) == (1, True)
    info = await topics.describe_topic("t", rig.session)
    assert (info.config.content_type, info.expires_at_ms, info.is_closed) == ("", 0, True)
