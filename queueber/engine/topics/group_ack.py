"""Acknowledge up to an offset: a shared group is done with all messages of a partition before it.

Whatever the group has of them is settled: what consumers have leased, what waits for its next
attempt, and what no consumer has had, because the position moves on. Dead letters stay. So the
acknowledgement of one consumer covers what others are working on; whoever does not want that
acknowledges the messages of a lease instead. The offset never goes back.
"""

from queueber.db.records.runs import Run, count_items
from queueber.engine.queue.queue_state import QueueTx
from queueber.engine.queue.remove import finish
from queueber.engine.records.batches import Side
from queueber.engine.topics.group import Group
from queueber.engine.topics.group_entries import (
    lowest_leased,
    lowest_waiting,
    take_leased_before,
    take_waiting,
)
from queueber.engine.topics.message_blocks import look_at_acknowledged
from queueber.engine.topics.read import start_of
from queueber.engine.topics.shared_groups import shared
from queueber.engine.topics.topic_state import TopicState
from queueber.errors import OutOfRange, ResourceExhausted
from queueber.limits import GROUP_ACK_MAX
from queueber.model import Position


def acknowledge_shared(
    tx: QueueTx, topic: TopicState, group: Group, partition: int, offset: int
) -> int:
    """The group is done with the messages before `offset`. Returns the offset of the first message
    that it is not done with. The transaction is that of the group."""
    topic.check_partition(partition)
    first, end = topic.first_offset(partition), topic.next_offset(partition)
    if not 0 <= offset <= end:
        raise OutOfRange(
            f"offset is {offset}; partition {partition} of topic {topic.name!r} has messages from "
            f"{first} up to {end}",
            first=first,
            next=end,
        )
    messages = shared(group).messages
    known, stored = messages.settled.get(partition, 0), messages.positions.get(partition)
    position = max(stored or 0, offset)
    at = max(known, offset, first)
    lowest = (
        lowest_waiting(tx.store, tx.queue, partition, at, position),
        lowest_leased(tx.store, tx.queue, partition, at, position),
    )
    if offset > known:
        gone = _take_before(tx, partition, offset, known)
        if gone:
            finish(tx, gone, Side.DONE)
            tx.counters.removed_total += count_items(gone)
        tx.after_write(messages.settled.__setitem__, partition, offset)
    if position != stored:
        messages.move(tx, {partition: position})
        look_at_acknowledged(tx, topic)
    return max(at, min(position, *lowest))


def _take_before(tx: QueueTx, partition: int, offset: int, known: int) -> list[Run]:
    """All messages before an offset, out of their leases and indexes; there are none before
    `known`."""
    taken = take_leased_before(tx, partition, offset, GROUP_ACK_MAX, first=known)
    if taken is not None:
        left = GROUP_ACK_MAX - count_items(taken)
        waiting = take_waiting(tx, partition, offset, left + 1, first=known)
        if count_items(waiting) <= left:
            return taken + waiting
    raise ResourceExhausted(
        f"group {tx.queue.name!r} has more than {GROUP_ACK_MAX} messages before offset {offset} "
        "that are leased or to be retried, the limit of a call; acknowledge a lower offset first"
    )


def begin(tx: QueueTx, topic: TopicState, group: Group, partition: int, position: Position) -> None:
    """Let the group begin a partition at a position, unless it has begun it."""
    messages = shared(group).messages
    offset = start_of(tx.store, topic, partition, position)[0]
    if partition not in messages.positions:
        messages.move(tx, {partition: offset})
