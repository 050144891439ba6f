"""Drop: free the space of a deleted topic in the background, a log at a time.

A small log is deleted entry by entry. Many range deletions would slow down every later search, and
there may be a million small topics; only a large log is worth one, and the work that gives its disk
space back.
"""

from typing import Any

from queueber.db.families import LOG_FAMILIES, TOPIC_FAMILIES, Family
from queueber.db.records.keys import prefix_end, queue_prefix
from queueber.db.store.contract import Store
from queueber.engine.kernel.transaction import Transaction
from queueber.engine.topics.topic_state import TopicState
from queueber.engine.topics.topics import Topics

_SINGLE_DELETES_MAX = 256


def drop_slice(tx: Transaction[Any], topics: Topics, topic: TopicState) -> bool:
    """Delete one log of a deleted topic, or at last the topic itself; whether nothing is left."""
    logs = topic.record.logs
    if logs:
        number = logs[-1]
        for family in LOG_FAMILIES:
            _delete_all(tx, topics, family, queue_prefix(number))
        topic.change(tx, logs=logs[:-1])
        return False
    for family in TOPIC_FAMILIES:
        _delete_all(tx, topics, family, topic.prefix)
    topic.noted.clear(tx)
    tx.after_write(topics.dropped, topic)
    return True


def _delete_all(tx: Transaction[Any], topics: Topics, family: Family, prefix: bytes) -> None:
    """Delete all entries of a family that begin with a prefix."""
    found = _few(tx.store, family, prefix)
    if found is not None:
        tx.batch.delete_many(family, found)
        return
    tx.batch.delete_range(family, prefix, prefix_end(prefix))
    if family is Family.LOG_BLOCKS:
        topics.queues.reclaim(tx, prefix)


def _few(store: Store, family: Family, prefix: bytes) -> list[bytes] | None:
    """The keys, if there are few."""
    keys: list[bytes] = []
    for key, _ in store.walk(family, prefix, prefix_end(prefix)):
        keys.append(key)
        if len(keys) > _SINGLE_DELETES_MAX:
            return None
    return keys
