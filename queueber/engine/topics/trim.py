"""Trim: delete the oldest messages, because somebody says so or at the limits of the topic."""

from typing import Any

from queueber.engine import log as logs
from queueber.engine.kernel.transaction import Transaction
from queueber.engine.topics.groups import acknowledged, look_at_lost
from queueber.engine.topics.read import start_of
from queueber.engine.topics.topic_state import TopicState
from queueber.errors import FailedPrecondition
from queueber.model import Position


def trim_topic(
    tx: Transaction[Any], topic: TopicState, partition: int | None, position: Position
) -> int:
    """Delete the messages before a position, of one partition or of all; returns how many."""
    if topic.record.forks:
        raise FailedPrecondition(
            f"topic {topic.name!r} has forks, which share its messages; delete them first",
            forks=topic.record.forks,
        )
    if topic.settings.keeps_last_per_key:
        raise FailedPrecondition(
            f"topic {topic.name!r} keeps the last message of each key; publish messages without a "
            "payload to delete keys"
        )
    chosen = range(topic.partitions) if partition is None else [partition]
    return sum([_trim_to(tx, topic, each, position) for each in chosen])


def _trim_to(tx: Transaction[Any], topic: TopicState, partition: int, position: Position) -> int:
    offset, _ = start_of(tx.store, topic, partition, position)
    deleted = offset - topic.first_offset(partition)
    if deleted <= 0:
        return 0
    _stop_sharing(tx, topic, partition, offset)
    log = topic.log(partition)
    if offset > log.head.first_offset:
        logs.trim_to(tx, log, offset)
    look_at_lost(tx, topic)
    return deleted


def trim_to_limits(tx: Transaction[Any], topic: TopicState, partition: int) -> int:
    """Delete what is beyond the limits of the topic; returns how many messages.

    The limits of a fork are about its own messages: with the first of those go all that it shares.
    """
    log = topic.log(partition)
    deleted = logs.trim(tx, log, topic.limits(acknowledged(topic, partition)))
    if deleted:
        look_at_lost(tx, topic)
        _stop_sharing(tx, topic, partition, log.head_in(tx).first_offset)
    return deleted


def _stop_sharing(tx: Transaction[Any], topic: TopicState, partition: int, offset: int) -> None:
    """A fork needs none of the messages before an offset that it shares."""
    inherited = topic.record_in(tx).inherited
    left = tuple(
        each._replace(first=max(each.first, offset)) if each.partition == partition else each
        for each in inherited
        if each.partition != partition or each.end > offset
    )
    if left != inherited:
        topic.change(tx, inherited=left)
