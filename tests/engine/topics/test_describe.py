"""What a caller may know of a topic."""

from collections.abc import Callable

from queueber.engine.topics.describe import topic_info
from queueber.model import PartitionInfo, TopicConfig, TopicInfo, TopicSettings
from tests.support.topic_rig import START_MS, TopicRig


def test_a_topic_tells_its_settings_and_how_far_its_partitions_reach() -> None:
    settings = TopicSettings(ttl_ms=1000)
    rig = TopicRig(settings, partitions=2)
    try:
        rig.create_group("b")
        rig.create_group("a")
        rig.now_ms += 5
        rig.publish(b"12345", partition=1)
        rig.now_ms += 5
        rig.publish(b"6", partition=1)

        told = topic_info(rig.topic, rig.topics)

        kept = rig.topic.log(1).head.kept_bytes
        assert told == TopicInfo(
            name="t",
            config=TopicConfig(settings, 2),
            created_at_ms=START_MS,
            partitions=[
                PartitionInfo(0, 0, 0, 0, 0),
                PartitionInfo(0, 2, kept, START_MS + 5, START_MS + 10),
            ],
            is_closed=False,
            is_deleted=False,
            forks=0,
            parent="",
            groups=["a", "b"],
            expires_at_ms=rig.topic.used_at_ms + 1000,
            origin=rig.topic.queue_id,
            number=rig.topic.queue_id,
            updated_at_ms=START_MS,
        )
    finally:
        rig.close()


def test_a_topic_without_a_time_to_live_never_expires(rig: TopicRig) -> None:
    assert topic_info(rig.topic, rig.topics).expires_at_ms == 0


def test_a_topic_tells_when_it_was_changed_and_not_when_it_was_used(rig: TopicRig) -> None:
    """Also after the store was opened again, and of a topic that was never changed."""

    def updated_ms() -> int:
        return topic_info(rig.topic, rig.topics).updated_at_ms

    settings = TopicSettings(retention_messages=5, ttl_ms=100_000)
    assert updated_ms() == START_MS
    changes: list[Callable[[], object]] = [
        lambda: rig.run(rig.topics.configure, rig.topic, settings),
        lambda: rig.run(rig.topics.configure, rig.topic, settings, alias="other"),
        lambda: rig.run(rig.topics.configure, rig.topic, settings, partitions=3),
        lambda: rig.run(rig.topics.close, rig.topic),
    ]
    for change in changes:
        rig.publish(b"used", text_sequence=str(rig.now_ms))
        rig.now_ms += 60_000
        before = updated_ms()
        rig.run(rig.topics.configure, rig.topic, rig.topic.settings)  # nothing new
        rig.publish(b"used again")
        assert updated_ms() == before
        change()
        assert updated_ms() == rig.now_ms
        rig.reopen()
        assert updated_ms() == rig.now_ms
