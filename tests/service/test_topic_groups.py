"""Groups as callers see them: polls of shared ones, bridges, and what ends with a topic."""

import asyncio

import pytest
from structlog.testing import capture_logs

from queueber.engine.integrity.check_store import check_store
from queueber.errors import NotFound
from queueber.limits import MINUTE_MS
from queueber.model import (
    GroupKind,
    GroupSettings,
    Position,
    QueueSettings,
    TopicConfig,
    TopicSettings,
)
from queueber.service.topic_handle import TopicHandle
from tests.service.test_topics import open_topic, publish
from tests.support.service_rig import HeldSync, ServiceRig, on_service, run_on_service
from tests.support.virtual_loop import turns


async def shared(rig: ServiceRig, topic: TopicHandle) -> None:
    settings = GroupSettings(GroupKind.SHARED)
    assert await rig.service.groups.create_group(topic, "g", settings, Position())


@on_service()
async def test_a_poll_of_a_shared_group_waits_for_messages(rig: ServiceRig) -> None:
    topic = await open_topic(rig)
    await shared(rig, topic)
    queue = rig.service.groups.open_group(topic, "g")
    waiting = await rig.waiting_poll(5, queue=queue)

    await publish(rig, topic, b"a", b"b")

    assert (await waiting).contents == [b"a", b"b"]
    assert rig.service.queues.stats(queue).leased == 2


@on_service()
async def test_polls_of_a_shared_group_end_with_its_topic(rig: ServiceRig) -> None:
    topic = await open_topic(rig)
    await shared(rig, topic)
    queue = rig.service.groups.open_group(topic, "g")
    waiting = await rig.waiting_poll(queue=queue)

    assert await rig.service.topics.delete_topic("t", rig.session)

    with pytest.raises(NotFound, match="queue 't/g' was deleted"):
        await waiting
    with pytest.raises(NotFound, match="queue 't/g' was deleted"):
        await rig.begin_poll(queue=queue)


@on_service()
async def test_polls_of_a_shared_group_end_when_its_topic_expires(rig: ServiceRig) -> None:
    config = TopicConfig(TopicSettings(ttl_ms=1000))
    await rig.service.topics.create_topic("t", config, rig.session)
    topic = await open_topic(rig)
    await shared(rig, topic)
    queue = rig.service.groups.open_group(topic, "g")
    async with rig.sweeper():
        waiting = await rig.waiting_poll(queue=queue, wait_ms=MINUTE_MS)
        with pytest.raises(NotFound, match="queue 't/g' was deleted"):
            await waiting


@on_service()
async def test_a_bridge_serves_polls_of_its_queue(rig: ServiceRig) -> None:
    topic = await open_topic(rig)
    settings = GroupSettings(GroupKind.QUEUE, "default")
    async with rig.sweeper():
        await rig.service.groups.create_group(topic, "g", settings, Position())
        waiting = await rig.waiting_poll(5)
        began_ms = rig.clock.now_ms()

        await publish(rig, topic, b"a", b"b")

        polled = await waiting
        assert (polled.contents, rig.clock.now_ms() - began_ms) == ([b"a", b"b"], 0)
        assert list(polled.details.keys) == ["t/0/0#2", "t/0/1#2"]
        await asyncio.sleep(1)
        assert rig.service.groups.describe_group(topic, "g").lag == 0


@on_service()
async def test_acknowledgements_of_many_callers_are_one_write(rig: ServiceRig) -> None:
    topic = await open_topic(rig)
    await publish(rig, topic, *[b"x"] * 9)
    groups = rig.service.groups
    for name in ("a", "b"):
        await groups.create_group(topic, name, GroupSettings(), Position())
    calls = [
        rig.begin(groups.ack(topic, name, 0, offset))
        for name, offset in (("a", 3), ("b", 5), ("a", 2), ("a", 9))
    ]
    await turns()

    assert [await call for call in calls] == [3, 5, 3, 9]
    assert [list(each.cursors) for each in groups.list_groups(topic)] == [[9], [5]]


def test_an_acknowledgement_that_waits_for_a_sync_is_refused_once_its_topic_has_expired() -> None:
    sync = HeldSync()

    async def body(rig: ServiceRig) -> None:
        sync.let()
        config = TopicConfig(TopicSettings(expires_at_ms=rig.clock.now_ms() + 1000))
        await rig.service.topics.create_topic("t", config, rig.session)
        sync.let()
        topic = await open_topic(rig)
        sync.let()
        await publish(rig, topic, b"a")
        sync.let()
        await rig.service.groups.create_group(topic, "g", GroupSettings(), Position())
        under_way = rig.begin(publish(rig, topic, b"b"))
        await sync.wait_begun(5)
        ack = rig.begin(rig.service.groups.ack(topic, "g", 0, 1))
        await turns()
        rig.clock.advance(1000)
        while rig.service.sweep():
            pass

        sync.let_all()

        with pytest.raises(NotFound, match="topic 't' was deleted, or has expired"):
            await ack
        await under_way
        assert [str(each) for each in check_store(rig.store)] == []

    run_on_service(body, sync=sync)


@on_service()
async def test_a_bridge_that_stops_is_logged_once_and_described(rig: ServiceRig) -> None:
    await rig.service.queues.create_queue("q", QueueSettings(item_bytes_max=3), rig.session)
    topic = await open_topic(rig)
    settings = GroupSettings(GroupKind.QUEUE, queue="q")
    await rig.service.groups.create_group(topic, "b", settings, Position())
    with capture_logs() as logs:
        async with rig.sweeper():
            await publish(rig, topic, b"a", b"long")
            await asyncio.sleep(10)

    reason = "message 1 of partition 0 of topic 't' has 4 bytes; item_bytes_max of queue 'q' is 3"
    assert [each for each in logs if each["log_level"] == "warning"] == [
        {
            "event": "bridge_stopped",
            "log_level": "warning",
            "topic": "t",
            "group": "b",
            "queue": "q",
            "partition": 0,
            "offset": 1,
            "reason": reason,
        }
    ]
    assert rig.service.groups.describe_group(topic, "b").stopped_by == reason
