"""Bridge: a group that adds the messages of a topic to a queue, each once.

Items and cursors are written together, so after a crash no message is missing and none is there
twice. The key of an item is the topic, partition and offset of its message: should somebody reset
the group, the queue recognises those items for as long as it remembers keys.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from queueber.db.records.blocks import unpack_attributes
from queueber.db.records.keys import NEVER_MS
from queueber.engine.kernel.transaction import Transaction
from queueber.engine.queue.add import add
from queueber.engine.queue.queue_state import QueueState
from queueber.engine.topics.group import Group
from queueber.engine.topics.groups import floor, move_cursor
from queueber.engine.topics.read import read
from queueber.engine.topics.topic_state import TopicState
from queueber.engine.topics.topics import Topics
from queueber.errors import FailedPrecondition, QueueberError, ResourceExhausted
from queueber.limits import BRIDGE_BYTES_MAX, BRIDGE_RETRY_MS
from queueber.model import Bounds, GroupKind, MessageSlice, NewItems, PackedMessages


def _bridges(topic: TopicState) -> list[Group]:
    return [each for each in topic.groups.values() if each.kind is GroupKind.QUEUE]


def bridged_queues(topics: Topics, topic: TopicState) -> list[QueueState]:
    """The queues that messages of the topic are added to."""
    queues = topics.queues.by_name
    names = {group.settings.queue for group in _bridges(topic)}
    return [queues[name] for name in sorted(names) if name in queues]


def bridge_due_ms(topic: TopicState, now_ms: int) -> int:
    """When there are messages to add to a queue; `NEVER_MS`: there are none."""
    due_ms = NEVER_MS
    for group in _bridges(topic):
        partitions = range(topic.partitions)
        if any(floor(topic, group, each) < topic.next_offset(each) for each in partitions):
            due_ms = min(due_ms, max(group.record.paused_until_ms, group.retry_at_ms))
    return due_ms


def fill_queues(tx: Transaction[Any], topics: Topics, topic: TopicState, messages_max: int) -> int:
    """Do a step of one group for which there are messages; returns how many were moved.

    A queue that is full or does not exist is tried again later.
    """
    for group in _bridges(topic):
        if max(group.record.paused_until_ms, group.retry_at_ms) > tx.now_ms:
            continue
        queue = topics.queues.by_name.get(group.settings.queue)
        try:
            moved = 0 if queue is None else move(tx, topics, topic, group, queue, messages_max)
        except QueueberError:
            moved = 0
        if moved:
            return moved
        group.retry_at_ms = tx.now_ms + BRIDGE_RETRY_MS
    return 0


def move(
    tx: Transaction[Any],
    topics: Topics,
    topic: TopicState,
    group: Group,
    queue: QueueState,
    messages_max: int,
) -> int:
    """Add up to `messages_max` messages to the queue, and move the group's cursors behind them.

    Returns how many there were. A queue that has no room for the next one refuses it, and the
    transaction stays as it was.
    """
    if group.kind is not GroupKind.QUEUE:
        raise FailedPrecondition(
            f"group {group.name!r} is of kind {group.kind.value!r}; only groups of kind 'queue' "
            "add messages to a queue"
        )
    if group.is_paused(tx.now_ms):
        return 0
    items = _Items(*_room(queue, messages_max))
    cursors: dict[int, int] = {}
    for partition in _in_turn(topic, group):
        start, end = floor(topic, group, partition), topic.next_offset(partition)
        if start < end:
            cursors[partition] = _take(tx, topic, partition, start, items)
            if cursors[partition] < end:
                tx.after_write(setattr, group, "turn", partition + 1)
                break
    if items.contents:
        add(tx.join(queue), NewItems(items.contents, keys=items.keys, attributes=items.attributes))
    elif items.is_full:
        raise ResourceExhausted(
            f"queue {queue.name!r} has {queue.counters.items} items and no room for the next "
            f"message of topic {topic.name!r}"
        )
    for partition, offset in cursors.items():
        move_cursor(tx, topic, group, partition, offset)
    return len(items.contents)


def _room(queue: QueueState, messages_max: int) -> tuple[int, int]:
    """How many messages the queue may get in one step, and of how many bytes."""
    settings, counters = queue.settings, queue.counters
    bytes_max = BRIDGE_BYTES_MAX
    if settings.items_max:
        messages_max = min(messages_max, settings.items_max - counters.items)
    if settings.bytes_max:
        bytes_max = min(bytes_max, settings.bytes_max - counters.contents_bytes)
    return messages_max, bytes_max


def _in_turn(topic: TopicState, group: Group) -> list[int]:
    """The partitions. The one that the last step ended with is the last, so that none waits for the
    others."""
    total = topic.partitions
    return [(group.turn + each) % total for each in range(total)]


@dataclass(slots=True)
class _Items:
    """The items that a step adds."""

    messages_left: int
    bytes_left: int
    contents: list[bytes] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    attributes: list[dict[str, str]] = field(default_factory=list)
    is_full: bool = False

    def put(self, key: str, payload: bytes, attributes: bytes) -> bool:
        """Whether there is room for one more."""
        size = len(payload) + len(key.encode()) + len(attributes)
        is_alone = not self.contents and self.bytes_left >= BRIDGE_BYTES_MAX
        if self.messages_left <= 0 or (size > self.bytes_left and not is_alone):
            self.is_full = True
            return False
        self.messages_left -= 1
        self.bytes_left -= size
        self.contents.append(payload)
        self.keys.append(key)
        self.attributes.append(unpack_attributes(attributes))
        return True


def _take(
    tx: Transaction[Any], topic: TopicState, partition: int, start: int, items: _Items
) -> int:
    """Take messages of a partition as far as there is room; returns the offset behind them."""
    bounds = Bounds(max(1, items.messages_left), max(1, items.bytes_left))
    found = read(tx.store, topic, partition, start, bounds)
    for offset, payload, attributes in _messages(found):
        if not items.put(f"{topic.name}/{partition}/{offset}", payload, attributes):
            return offset
    return found.next_offset


def _messages(found: MessageSlice) -> Iterator[tuple[int, bytes, bytes]]:
    """Offset, payload and packed attributes of each message."""
    for piece in found.packed:
        yield from _of_piece(piece)


def _of_piece(piece: PackedMessages) -> Iterator[tuple[int, bytes, bytes]]:
    start = 0
    for at, end in enumerate(struct.unpack(f"<{piece.count}I", piece.ends)):
        attributes = piece.attributes[at] if piece.attributes else b""
        yield piece.offset + at, piece.payloads[start:end], attributes
        start = end
