"""The rows of the overview: queues and topics, each with its numbers and rates."""

from collections.abc import Sequence

import msgspec

from queueber.model import GroupInfo, Stats, TopicInfo
from queueber.rates import Rates


class QueueRow(msgspec.Struct, array_like=True, frozen=True):
    """A queue. Sent as an array: there may be 1,000 of them a second."""

    name: str
    ready: int
    delayed: int
    leased: int
    dead: int
    oldest_ms: int
    """How long the oldest ready item has waited."""
    waiting_polls: int
    paused_until_ms: int
    added_per_s: float
    polled_per_s: float
    done_per_s: float
    """Completed or removed."""
    failed_per_s: float
    expired_per_s: float


class TopicRow(msgspec.Struct, array_like=True, frozen=True):
    name: str
    partitions: int
    messages: int
    bytes: int
    groups: int
    lag: int
    """Of the group that is furthest behind."""
    lag_ms: int
    last_ms: int
    """When the last message was published; 0: there is none."""
    is_closed: bool
    messages_per_s: float


def queue_row(stats: Stats, rates: Rates, at: float) -> QueueRow:
    totals = (
        stats.added_total,
        stats.polled_total,
        stats.completed_total + stats.removed_total,
        stats.failed_total,
        stats.expired_total,
    )
    return QueueRow(
        stats.name,
        stats.ready,
        stats.delayed,
        stats.leased,
        stats.dead,
        stats.oldest_claimable_age_ms,
        stats.waiting_polls,
        stats.paused_until_ms,
        *rates.of(stats.name, at, totals),
    )


def topic_row(topic: TopicInfo, groups: Sequence[GroupInfo], rates: Rates, at: float) -> TopicRow:
    partitions = topic.partitions
    (messages_per_s,) = rates.of(topic.name, at, [sum(each.next_offset for each in partitions)])
    return TopicRow(
        topic.name,
        len(partitions),
        sum(each.next_offset - each.first_offset for each in partitions),
        sum(each.bytes for each in partitions),
        len(groups),
        max((each.lag for each in groups), default=0),
        max((each.lag_ms for each in groups), default=0),
        max((each.last_ms for each in partitions), default=0),
        topic.is_closed,
        messages_per_s,
    )
