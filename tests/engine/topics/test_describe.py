"""What a caller may know of a topic."""

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
        )
    finally:
        rig.close()


def test_a_topic_without_a_time_to_live_never_expires(rig: TopicRig) -> None:
    assert topic_info(rig.topic, rig.topics).expires_at_ms == 0
