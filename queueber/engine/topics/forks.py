"""Forks: a topic that shares the messages of another up to an offset, without a copy.

The record of a fork says in which logs the messages are that it shares, so reading one costs the
same however deep it is. A topic that has forks deletes no messages, and stays when it is deleted,
until the last of its forks is gone.
"""

from typing import Any

from queueber.db.records.keys import split_queue_prefix
from queueber.db.records.log import LogHead, head_of
from queueber.db.records.topics import Inherited, TopicRecord
from queueber.engine.kernel.transaction import Transaction
from queueber.engine.topics.topic_state import TopicState
from queueber.engine.topics.topics import Topics
from queueber.errors import AlreadyExists, FailedPrecondition, OutOfRange, ResourceExhausted
from queueber.limits import FORKS_MAX, INHERITED_MAX
from queueber.model import TopicConfig


def fork(
    tx: Transaction[Any],
    topics: Topics,
    topic: TopicState,
    name: str,
    config: TopicConfig,
    partition: int | None = None,
    offset: int = 0,
) -> tuple[TopicState, bool]:
    """The fork, and whether it is new. It shares the messages of a partition before the offset, and
    all messages that the other partitions have now."""
    _check_may_fork(topic)
    ends = [topic.log(each).head_in(tx).next_offset for each in range(topic.partitions)]
    if partition is not None:
        topic.check_partition(partition)
        first, end = topic.first_offset(partition), ends[partition]
        if not first <= offset <= end:
            raise OutOfRange(
                f"offset is {offset}; partition {partition} of topic {topic.name!r} has messages "
                f"from {first} up to {end}",
                first=first,
                next=end,
            )
        ends[partition] = offset
    inherited = _inherited(topic, ends)
    record = TopicRecord(
        name,
        tx.now_ms,
        (),
        config.settings,
        config.alias,
        config.content_type or topic.record.content_type,
        used_at_ms=tx.now_ms if config.settings.ttl_ms else 0,
        parent=topic.queue_id,
        inherited=inherited,
    )
    existing = topics.find(name, tx)
    if existing is not None and existing.expires_at_ms > tx.now_ms:
        if _is_same(existing.record_in(tx), record, has_offset=partition is not None):
            return existing, False
        raise AlreadyExists(f"topic {name!r} exists; choose another name for the fork")
    if existing is not None:
        topics.delete(tx, existing)
    made = topics.put(tx, record, topic.partitions)
    for at, end in enumerate(ends):
        last_ms = topic.log(at).head_in(tx).last_ms
        made.begin_log(tx, at, head_of(None, LogHead(next_offset=end, last_ms=last_ms)))
    topic.change(tx, forks=topic.record_in(tx).forks + 1)
    return made, True


def _check_may_fork(topic: TopicState) -> None:
    if topic.settings.keeps_last_per_key:
        raise FailedPrecondition(
            f"topic {topic.name!r} keeps only the last message of each key, and cannot be forked"
        )
    if topic.record.forks >= FORKS_MAX:
        raise ResourceExhausted(f"topic {topic.name!r} has {FORKS_MAX} forks, the limit")


def _inherited(topic: TopicState, ends: list[int]) -> tuple[Inherited, ...]:
    """The messages before each end: of the topic's own logs, and those that it shares itself."""
    found = [
        Inherited(partition, split_queue_prefix(prefix), first, min(end, stop))
        for partition, stop in enumerate(ends)
        for prefix, first, end in topic.stretches(partition)
        if first < min(end, stop)
    ]
    if len(found) > INHERITED_MAX:
        raise ResourceExhausted(
            f"the fork would share {len(found)} stretches of messages, one for each partition and "
            f"ancestor; the limit is {INHERITED_MAX}"
        )
    return tuple(found)


def _is_same(record: TopicRecord, wanted: TopicRecord, *, has_offset: bool) -> bool:
    """Whether a topic is the fork that a repeated call asks for."""
    like = wanted._replace(
        created_at_ms=record.created_at_ms,
        logs=record.logs,
        used_at_ms=record.used_at_ms,
        forks=record.forks,
        is_closed=record.is_closed,
    )
    if not has_offset:
        # It began where the topic ended then; meanwhile that may be elsewhere.
        like = like._replace(inherited=record.inherited)
    return record == like
