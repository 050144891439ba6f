"""The space of deleted topics is freed in the background."""

from queueber.db.families import Family
from queueber.engine.topics.publish import publish
from queueber.limits import AGENDA_SLACK_MS
from queueber.model import GroupKind, NewMessages, Producer, Publication, TopicSettings
from tests.support.topic_rig import TOPIC, TopicRig


def entries(rig: TopicRig) -> dict[str, int]:
    """How many entries each family has, without those of the whole store."""
    counts = {f.family_name: len(rig.store.scan(f, b"", b"\xff" * 20, 5000)) for f in Family}
    del counts["default"]
    return {name: count for name, count in counts.items() if count}


def test_nothing_is_left_of_a_small_topic(rig: TopicRig) -> None:
    rig.publish(*[b"x"] * 10, keys=[str(n) for n in range(10)])
    producer = Producer("p", 0, 1)
    messages = NewMessages([b"y"], dedup_ids=["d"])
    rig.run(publish, rig.topics, [(rig.topic, Publication(TOPIC, messages, 0, producer))])
    rig.create_group("ordered", GroupKind.ORDERED)
    reclaims = list(rig.queues.reclaims)

    rig.run(rig.topics.delete, rig.topic)
    assert rig.topics.find(TOPIC) is None
    rig.sweep()
    rig.now_ms += 2 * AGENDA_SLACK_MS
    rig.sweep()

    assert entries(rig) == {}
    assert rig.queues.reclaims == reclaims


def test_a_name_can_be_used_again_while_the_old_topic_is_being_dropped(rig: TopicRig) -> None:
    rig.publish(b"old", partition=0)
    old = rig.topic
    rig.run(rig.topics.delete, old)

    rig.run(rig.topics.create, TOPIC, TopicSettings(), partitions=2)
    rig.publish(b"new", partition=0)
    rig.sweep()

    assert rig.topic is not old
    assert rig.read(0) == [(0, b"new")]


def test_a_drop_goes_on_after_a_restart(rig: TopicRig) -> None:
    rig.publish(b"x", partition=0)
    rig.run(rig.topics.delete, rig.topic)
    rig.reopen()
    rig.now_ms += AGENDA_SLACK_MS
    rig.sweep()
    rig.now_ms += 2 * AGENDA_SLACK_MS
    rig.sweep()

    assert entries(rig) == {}


def test_a_large_log_is_deleted_as_a_range_and_its_space_reclaimed(rig: TopicRig) -> None:
    for _ in range(300):
        rig.publish(b"x", partition=0)
    number = rig.topic.log(0).prefix
    rig.run(rig.topics.delete, rig.topic)
    rig.sweep()

    assert number in rig.queues.reclaims
    assert not rig.store.scan(Family.LOG_BLOCKS, b"", b"\xff" * 16, 1)
