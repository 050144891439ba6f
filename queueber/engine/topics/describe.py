"""What a caller may know of a topic, and how many there are."""

from itertools import islice

from queueber.db.families import Family
from queueber.db.records.keys import NEVER_MS
from queueber.db.store.contract import Store
from queueber.engine.topics.topic_state import TopicState
from queueber.engine.topics.topics import Topics
from queueber.ids import QueueId
from queueber.model import PartitionInfo, TopicConfig, TopicInfo


def topic_info(topic: TopicState, topics: Topics, now_ms: int = 0) -> TopicInfo:
    """What there is of a topic. One that has expired is deleted, be that written or not."""
    record = topic.record
    parent = topics.load(QueueId(record.parent)) if record.parent else None
    expires_at_ms = topic.expires_at_ms
    return TopicInfo(
        record.name,
        TopicConfig(record.settings, topic.partitions, record.content_type, record.alias),
        record.created_at_ms,
        [_partition_info(topic, each) for each in range(topic.partitions)],
        record.is_closed,
        record.is_deleted or topic.expires_at_ms <= now_ms,
        record.forks,
        "" if parent is None else parent.name,
        sorted(topic.groups),
        0 if expires_at_ms == NEVER_MS else expires_at_ms,
        topics.origin(topic),
        topic.queue_id,
        record.fork_offset,
        record.cut_bytes,
        record.text_sequence,
        updated_at_ms=record.updated_at_ms or record.created_at_ms,
    )


def _partition_info(topic: TopicState, partition: int) -> PartitionInfo:
    head = topic.log(partition).head
    return PartitionInfo(
        topic.first_offset(partition),
        head.next_offset,
        head.kept_bytes,
        head.oldest_ms,
        head.last_ms,
        topic.inherited_bytes(partition),
    )


def count_names(store: Store, prefix: str, limit: int) -> int:
    """How many names and aliases of topics begin with the prefix, up to a limit."""
    text = prefix.encode()
    found = store.walk(Family.TOPIC_NAMES, text, text + b"\xff")
    return sum(1 for _ in islice(found, limit))
