"""Bridge: a group that adds the messages of a topic to a queue, each once.

Items and cursor are written together, so after a crash no message is missing and none is there
twice. The key of an item is the topic, partition and offset of its message: should somebody reset
the group, the queue recognises those items for as long as it remembers keys.
"""

import struct
from typing import Any

from queueber.db.records.blocks import unpack_attributes
from queueber.engine.kernel.transaction import Transaction
from queueber.engine.queue.add import add
from queueber.engine.queue.queue_state import QueueState
from queueber.engine.topics.group import Group
from queueber.engine.topics.groups import floor, move_cursor
from queueber.engine.topics.read import read
from queueber.engine.topics.topic_state import TopicState
from queueber.engine.topics.topics import Topics
from queueber.errors import FailedPrecondition
from queueber.limits import BRIDGE_BYTES_MAX
from queueber.model import Bounds, GroupKind, MessageSlice, NewItems, PackedMessages


def move(
    tx: Transaction[Any],
    topics: Topics,
    topic: TopicState,
    group: Group,
    queue: QueueState,
    messages_max: int,
) -> int:
    """Add up to `messages_max` messages to the queue, and move the group's cursor behind them.

    Returns how many there were. A queue that has no room for all of them raises
    `ResourceExhausted`: then the transaction must not be committed.
    """
    if group.kind is not GroupKind.QUEUE:
        raise FailedPrecondition(
            f"group {group.name!r} is of kind {group.kind.value!r}; only groups of kind 'queue' "
            "add messages to a queue"
        )
    if group.is_paused(tx.now_ms):
        return 0
    found = _read(tx, topic, group, messages_max)
    items = NewItems([], keys=[], attributes=[])
    for each in found:
        for piece in each.packed:
            _append(items, topic.name, each.partition, piece)
        move_cursor(tx, topic, group, each.partition, each.next_offset)
    if items.contents:
        add(tx.join(queue), items)
    return len(items.contents)


def _read(
    tx: Transaction[Any], topic: TopicState, group: Group, messages_max: int
) -> list[MessageSlice]:
    """The next messages of the partitions, with limits on all of them together."""
    found: list[MessageSlice] = []
    messages_left, bytes_left = messages_max, BRIDGE_BYTES_MAX
    for partition in range(topic.partitions):
        start = floor(topic, group, partition)
        if start == topic.next_offset(partition):
            continue
        if messages_left <= 0 or bytes_left <= 0:
            break
        bounds = Bounds(messages_left, bytes_left)
        found.append(read(tx.store, topic, partition, start, bounds))
        messages_left -= found[-1].count
        bytes_left -= sum([len(piece.payloads) for piece in found[-1].packed])
    return found


def _append(items: NewItems, topic: str, partition: int, piece: PackedMessages) -> None:
    ends = struct.unpack(f"<{piece.count}I", piece.ends)
    start = 0
    for at, end in enumerate(ends):
        items.contents.append(piece.payloads[start:end])
        items.keys.append(f"{topic}/{partition}/{piece.offset + at}")
        packed = piece.attributes[at] if piece.attributes else b""
        items.attributes.append(unpack_attributes(packed))
        start = end
