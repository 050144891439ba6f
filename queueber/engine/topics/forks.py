"""Forks: a topic that shares the messages of another up to an offset, without a copy.

The record of a fork says in which logs the messages are that it shares, so reading one costs the
same however deep it is. A topic that has forks deletes no messages, and stays when it is deleted,
until the last of its forks is gone.
"""

from typing import Any

from queueber.db.records.blocks import unpack_attributes
from queueber.db.records.keys import split_queue_prefix
from queueber.db.records.log import LogHead, head_of
from queueber.db.records.topics import Inherited, TopicRecord
from queueber.engine.kernel.transaction import Transaction
from queueber.engine.topics.append import append
from queueber.engine.topics.read import read
from queueber.engine.topics.topic_state import TopicState
from queueber.engine.topics.topics import Topics
from queueber.errors import AlreadyExists, FailedPrecondition, OutOfRange, ResourceExhausted
from queueber.limits import FORKS_MAX, INHERITED_MAX
from queueber.model import Bounds, ForkAt, NewMessages, TopicConfig

_ALL = ForkAt()


def fork(
    tx: Transaction[Any],
    topics: Topics,
    topic: TopicState,
    name: str,
    config: TopicConfig,
    at: ForkAt = _ALL,
) -> tuple[TopicState, bool]:
    """The fork, and whether it is new. It shares the messages of a partition before the offset, and
    all messages that the other partitions have now."""
    _check_may_fork(topic)
    ends = [topic.log(each).head_in(tx).next_offset for each in range(topic.partitions)]
    first_message = None
    if at.partition is not None:
        topic.check_partition(at.partition)
        _check_offset(topic, at, ends[at.partition])
        ends[at.partition] = at.offset
        first_message = _cut_message(tx, topic, at) if at.cut_bytes else None
    record = TopicRecord(
        name,
        tx.now_ms,
        (),
        config.settings,
        config.alias,
        config.content_type or topic.record.content_type,
        used_at_ms=tx.now_ms if config.settings.ttl_ms else 0,
        parent=topic.queue_id,
        inherited=_inherited(topic, ends),
        origin=topics.origin(topic),
        fork_offset=ends[0] if len(ends) == 1 else 0,
        cut_bytes=at.cut_bytes,
    )
    existing = topics.in_the_way(tx, name)
    if existing is not None:
        if _is_same(existing.record_in(tx), record, has_offset=at.partition is not None):
            return existing, False
        raise AlreadyExists(f"topic {name!r} exists; choose another name for the fork")
    made = topics.put(tx, record, topic.partitions)
    for partition, end in enumerate(ends):
        last_ms = topic.log(partition).head_in(tx).last_ms
        made.begin_log(tx, partition, head_of(None, LogHead(next_offset=end, last_ms=last_ms)))
    if first_message is not None:
        append(tx, topics, made, first_message, at.partition)
    topic.change(tx, forks=topic.record_in(tx).forks + 1)
    return made, True


def _check_offset(topic: TopicState, at: ForkAt, end: int) -> None:
    first = topic.first_offset(at.partition or 0)
    if not first <= at.offset <= end or (at.cut_bytes and at.offset == end):
        raise OutOfRange(
            f"offset is {at.offset}; partition {at.partition} of topic {topic.name!r} has messages "
            f"from {first} up to {end}"
            + (", and cut_bytes needs the one at the offset" if at.offset == end else ""),
            first=first,
            next=end,
        )


def _cut_message(tx: Transaction[Any], topic: TopicState, at: ForkAt) -> NewMessages:
    """The first bytes of the message at an offset, with its key and attributes."""
    bounds = Bounds(messages=1)
    (piece,) = read(tx.store, topic, at.partition or 0, at.offset, bounds).packed
    (payload,) = piece.split()
    if at.cut_bytes >= len(payload):
        raise OutOfRange(
            f"cut_bytes is {at.cut_bytes}; the limit is {max(0, len(payload) - 1)}, because the "
            f"message at offset {at.offset} has {len(payload)} bytes, and a fork begins with fewer",
            bytes=len(payload),
        )
    return NewMessages(
        [payload[: at.cut_bytes]],
        [key.decode() for key in piece.keys],
        [unpack_attributes(each) for each in piece.attributes],
    )


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
        text_sequence=record.text_sequence,
        sources=record.sources,
        # Where it began is compared below; what it shares becomes less when it is trimmed.
        inherited=record.inherited,
        fork_offset=record.fork_offset,
        origin=record.origin,
    )
    if record != like:
        return False
    if not has_offset:
        return True  # it began where the topic ended then; meanwhile that may be elsewhere
    if record.fork_offset:
        return record.fork_offset == wanted.fork_offset
    return record.inherited == wanted.inherited
