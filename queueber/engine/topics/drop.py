"""Drop: free the space of a deleted topic in the background, a group or a log at a time."""

from typing import Any

from queueber.db.families import LOG_FAMILIES, TOPIC_FAMILIES, Family
from queueber.db.records.keys import queue_prefix
from queueber.engine.kernel.delete_all import delete_all
from queueber.engine.kernel.transaction import Transaction
from queueber.engine.topics.groups import delete_group
from queueber.engine.topics.topic_state import TopicState
from queueber.engine.topics.topics import Topics


def drop_slice(tx: Transaction[Any], topics: Topics, topic: TopicState) -> bool:
    """Delete one group or log of a deleted topic, or at last the topic itself; whether nothing is
    left."""
    for group in topic.groups.values():
        delete_group(tx, topics, topic, group)
        return False
    logs = topic.record.logs
    if logs:
        prefix = queue_prefix(logs[-1])
        for family in LOG_FAMILIES:
            if delete_all(tx, family, prefix) and family is Family.LOG_BLOCKS:
                # Only then is it worth the work that gives disk space back.
                topics.queues.reclaim(tx, prefix)
        topic.change(tx, logs=logs[:-1])
        return False
    for family in TOPIC_FAMILIES:
        delete_all(tx, family, topic.prefix)
    topic.noted.clear(tx)
    tx.after_write(topics.dropped, topic)
    return True
