"""Consuming one partition of a shared group, as callers see it."""

import pytest

from queueber.errors import FailedPrecondition, InvalidArgument, NotFound
from queueber.model import (
    Consuming,
    Delivery,
    GroupKind,
    GroupSettings,
    Position,
    QueueSettings,
    Start,
    TopicConfig,
)
from queueber.service.topic_handle import TopicHandle
from tests.service.test_topics import open_topic, publish
from tests.support.service_rig import ServiceRig, on_service

SHARED = GroupSettings(GroupKind.SHARED, leases=QueueSettings(attempts_max=0, isolation=False))


async def topic_of(rig: ServiceRig, partitions: int) -> TopicHandle:
    await rig.service.topics.create_topic("t", TopicConfig(partitions=partitions), rig.session)
    return await open_topic(rig)


async def consume(
    rig: ServiceRig, topic: TopicHandle, partition: int = 0, *, count: int = 10, wait_ms: int = 0,
    name: object = None, at: Position | None = None,
) -> Delivery:  # fmt: skip
    asked = Consuming("g", partition, at or Position(), SHARED, count)
    return await rig.service.windows.consume(topic, asked, wait_ms=wait_ms, name=name)


def offsets(delivery: Delivery) -> list[int]:
    return [
        offset
        for each in delivery.slice.packed
        for offset in range(each.offset, each.offset + each.count)
    ]


@on_service()
async def test_the_first_consumer_creates_the_group(rig: ServiceRig) -> None:
    topic = await open_topic(rig)
    await publish(rig, topic, b"a", b"b", b"c")

    first = await consume(rig, topic, count=2, at=Position(Start.OFFSET, 1))
    second = await consume(rig, topic, at=Position(Start.EARLIEST))

    assert (offsets(first), first.slice.next_offset, len(first.lease)) == ([1, 2], 3, 16)
    assert (offsets(second), second.slice.next_offset, second.lease) == ([], 3, b"")


@on_service()
async def test_consumers_wait_for_messages_of_their_own_partition(rig: ServiceRig) -> None:
    topic = await topic_of(rig, 3)
    waits = [
        await rig.waiting(consume(rig, topic, partition, wait_ms=60_000))
        for partition in (0, 1, 1, 2)
    ]
    await publish(rig, topic, b"a", partition=2)
    assert offsets(await waits[3]) == [0]
    assert not any(each.done() for each in waits[:3])

    await publish(rig, topic, b"b", b"c", partition=1)
    assert offsets(await waits[1]) == [0, 1], "first come, first served"
    await publish(rig, topic, b"d", partition=1)
    assert offsets(await waits[2]) == [2]

    await publish(rig, topic, b"e", partition=0)
    assert offsets(await waits[0]) == [0]


@on_service()
async def test_a_consumer_waits_though_other_partitions_have_messages(rig: ServiceRig) -> None:
    topic = await topic_of(rig, 2)
    await publish(rig, topic, b"a", partition=0)

    waiting = await rig.waiting(consume(rig, topic, 1, wait_ms=60_000))
    await publish(rig, topic, b"b", partition=1)

    assert offsets(await waiting) == [0]
    assert offsets(await consume(rig, topic, 0)) == [0]


@on_service()
async def test_an_acknowledgement_lets_consumers_go_on_at_the_limit_of_leases(
    rig: ServiceRig,
) -> None:
    topic = await open_topic(rig)
    settings = GroupSettings(GroupKind.SHARED, in_flight_max=2)
    await rig.service.groups.create_group(topic, "g", settings, Position())
    await publish(rig, topic, b"a", b"b", b"c")
    assert offsets(await consume(rig, topic)) == [0, 1]
    waiting = await rig.waiting(consume(rig, topic, wait_ms=60_000))

    assert await rig.service.groups.ack(topic, "g", 0, 2) == 2

    assert offsets(await waiting) == [2]


@on_service()
async def test_a_withdrawn_consumer_takes_nothing(rig: ServiceRig) -> None:
    topic = await open_topic(rig)
    waiting = await rig.waiting(consume(rig, topic, wait_ms=60_000, name="w"))

    rig.service.polls.withdraw_poll("w")

    assert offsets(await waiting) == []
    await publish(rig, topic, b"a")
    assert offsets(await consume(rig, topic)) == [0]


@on_service()
async def test_what_a_consumer_asks_for_is_checked_before_a_group_is_created(
    rig: ServiceRig,
) -> None:
    topic = await open_topic(rig)
    service = rig.service

    with pytest.raises(FailedPrecondition, match="kind 'ordered'"):
        await service.windows.consume(topic, Consuming("g"), wait_ms=0)
    with pytest.raises(InvalidArgument, match="partition"):
        await consume(rig, topic, 7)
    with pytest.raises(InvalidArgument, match="from"):
        await consume(rig, topic, at=Position(Start.GROUP))
    with pytest.raises(InvalidArgument, match="group: it is empty"):
        await service.windows.consume(topic, Consuming("", settings=SHARED), wait_ms=0)

    assert service.groups.list_groups(topic) == []
    await service.topics.delete_topic("t", rig.session)
    with pytest.raises(NotFound):
        await consume(rig, topic)
