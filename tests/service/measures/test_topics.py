"""Metrics and histories of topics and groups."""

from queueber.model import (
    GroupKind,
    GroupSettings,
    History,
    HistorySpan,
    NewMessages,
    Position,
    Publication,
)
from queueber.service.measures.metrics import NAMED_MAX
from queueber.service.measures.topics import SERIES
from queueber.service.topic_handle import TopicHandle
from tests.service.measures.test_queues import sample, values_of
from tests.support.service_rig import ServiceRig, on_service


async def new_topic(rig: ServiceRig, name: str = "t") -> TopicHandle:
    return await rig.service.topics.open_topic(name, rig.session, must_exist=False)


async def publish(rig: ServiceRig, topic: TopicHandle, *payloads: bytes) -> None:
    await rig.service.publishing.publish_to(topic, Publication("", NewMessages(payloads)))


def history(rig: ServiceRig, name: str = "t") -> History:
    found = rig.service.measures.histories([], [name], HistorySpan.HOUR, 0, rig.session)
    return found.topics[name]


@on_service()
async def test_messages_and_bytes_are_counted_by_topic(rig: ServiceRig) -> None:
    topic = await new_topic(rig)
    await publish(rig, topic, b"a", b"b")
    await rig.service.topics.trim(topic, 0, Position())

    assert values_of(rig, "queueber_topic_published_messages_total") == {("t",): 2}
    assert values_of(rig, "queueber_published_messages_total") == {(): 2}
    assert values_of(rig, "queueber_topic_messages") == {("t",): 2}
    (kept,) = values_of(rig, "queueber_topic_bytes").values()
    assert values_of(rig, "queueber_topic_published_bytes_total") == {("t",): kept}
    assert values_of(rig, "queueber_topics") == {(): 1}


@on_service()
async def test_lag_is_measured_at_each_sample(rig: ServiceRig) -> None:
    topic = await new_topic(rig)
    await rig.service.groups.create_group(topic, "g", GroupSettings(), Position())
    shared = GroupSettings(GroupKind.SHARED)
    await rig.service.groups.create_group(topic, "s", shared, Position())
    await publish(rig, topic, b"a", b"b", b"c")

    sample(rig, 4000)

    assert values_of(rig, "queueber_group_lag_messages")["t", "g"] == 3
    assert values_of(rig, "queueber_group_lag_seconds")["t", "g"] == 4
    assert values_of(rig, "queueber_group_dead_messages")["t", "g"] == 0
    assert history(rig).series["lag"] == [3]


@on_service()
async def test_messages_of_topics_without_a_sample_are_counted_together(rig: ServiceRig) -> None:
    topics = [await new_topic(rig, f"t{number}") for number in range(NAMED_MAX + 5)]
    for topic in topics:
        await publish(rig, topic, b"a")
        await publish(rig, topic, b"b")
    sample(rig)
    before = values_of(rig, "queueber_topic_published_messages_total")
    unnamed = [each for each in topics if (each.name,) not in before]

    for topic in unnamed:
        await publish(rig, topic, b"c", b"d")
    after = values_of(rig, "queueber_topic_published_messages_total")

    assert len(unnamed) == 5
    assert len(before) == NAMED_MAX + 1
    assert after["(other)",] - before["(other)",] == 10
    assert values_of(rig, "queueber_topics") == {(): NAMED_MAX + 5}


@on_service()
async def test_deleted_topic_has_no_samples(rig: ServiceRig) -> None:
    topic = await new_topic(rig)
    await publish(rig, topic, b"a")
    sample(rig)
    assert values_of(rig, "queueber_topic_messages") == {("t",): 1}

    await rig.service.topics.delete_topic("t", rig.session)
    sample(rig)

    assert values_of(rig, "queueber_topic_messages") == {}
    assert history(rig) == History()


@on_service()
async def test_topic_that_nobody_uses_is_not_looked_at(rig: ServiceRig) -> None:
    topic = await new_topic(rig)
    await publish(rig, topic, b"a")

    again = rig.restarted()
    sample(again)

    assert values_of(again, "queueber_topic_messages") == {}
    assert values_of(again, "queueber_published_messages_total") == {(): 1}
    assert len(list(again.engine.topics)) == 0


@on_service()
async def test_history_has_rates_and_sizes_at_each_step(rig: ServiceRig) -> None:
    sample(rig)
    topic = await new_topic(rig)
    await publish(rig, topic, *[b"x"] * 20)
    sample(rig)
    sample(rig)

    found = history(rig)

    assert tuple(found.series) == SERIES
    assert found.series["messages_per_s"] == [2, 0]
    assert found.series["messages"] == [20, 20]
    assert found.series["bytes_per_s"][0] == found.series["bytes"][0] / 10
    assert found.series["lag"] == [0, 0]
