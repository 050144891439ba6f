"""Bridge: a group that adds the messages of a topic to a queue, each once.

Items and cursors are written together, so after a crash no message is missing and none is there
twice. The key of an item is the topic, partition and offset of its message: should somebody reset
the group, the queue recognises those items for as long as it remembers keys.
"""

from dataclasses import dataclass, field
from itertools import count, repeat
from typing import Any

from queueber.db.records.blocks import unpack_attributes
from queueber.db.records.keys import NEVER_MS
from queueber.engine.kernel.transaction import Transaction
from queueber.engine.queue.add import add
from queueber.engine.queue.queue_state import QueueState
from queueber.engine.topics.group import BridgeState, Group, Stop
from queueber.engine.topics.groups import floor, move_cursor
from queueber.engine.topics.read import read
from queueber.engine.topics.topic_state import TopicState
from queueber.engine.topics.topics import Topics
from queueber.errors import NotFound, QueueberError, ResourceExhausted
from queueber.limits import BRIDGE_BYTES_MAX, BRIDGE_RETRY_MS
from queueber.model import Bounds, GroupKind, NewItems


def _bridges(topic: TopicState) -> list[Group]:
    return [each for each in topic.groups.values() if each.kind is GroupKind.QUEUE]


def bridged_queues(topics: Topics, topic: TopicState) -> list[QueueState]:
    """The queues that messages of the topic are added to."""
    queues = topics.queues.by_name
    names = {group.settings.queue for group in _bridges(topic)}
    return [queues[name] for name in sorted(names) if name in queues]


def bridge_due_ms(topic: TopicState, now_ms: int) -> int:
    """When there are messages to add to a queue; `NEVER_MS`: there are none."""
    return min([_due_ms(topic, group) for group in _bridges(topic)], default=NEVER_MS)


def _due_ms(topic: TopicState, group: Group) -> int:
    bridge, due_ms = group.bridge, NEVER_MS
    for partition in range(topic.partitions):
        at = floor(topic, group, partition)
        if at < topic.next_offset(partition):
            stop = bridge.stop_at(partition, at)
            due_ms = min(due_ms, 0 if stop is None else stop.retry_at_ms)
    return max(due_ms, group.record.paused_until_ms, bridge.retry_at_ms)


def fill_queues(tx: Transaction[Any], topics: Topics, topic: TopicState, messages_max: int) -> int:
    """Do a step of one group for which there are messages; returns how many were moved.

    A queue that is full or does not exist, or that does not take a message because it is too large,
    is tried again later.
    """
    for group in _bridges(topic):
        if _due_ms(topic, group) > tx.now_ms:
            continue
        bridge, moved = group.bridge, 0
        try:
            queue = topics.queues.get(group.settings.queue)
            moved = move(tx, topic, group, queue, messages_max)
            bridge.refuse("", is_told=False)
        except QueueberError as error:
            # Queues are full all the time, until their items are done. No queue comes by itself.
            bridge.refuse(str(error), is_told=isinstance(error, NotFound))
        if moved:
            return moved
        if _due_ms(topic, group) <= tx.now_ms:
            bridge.retry_at_ms = tx.now_ms + BRIDGE_RETRY_MS
    return 0


def new_stops(topic: TopicState) -> list[tuple[Group, Stop]]:
    """What has stopped the bridges of a topic since they were last asked."""
    found = [(group, stop) for group in _bridges(topic) for stop in group.bridge.untold]
    for group, _ in found:
        group.bridge.untold.clear()
    return found


def move(
    tx: Transaction[Any], topic: TopicState, group: Group, queue: QueueState, messages_max: int
) -> int:
    """Add up to `messages_max` messages to the queue, and move the group's cursors behind them.

    Returns how many there were. A queue that has no room for the next one refuses it, and the
    transaction stays as it was. A message that is larger than an item of the queue may be stops its
    partition, and no other.
    """
    bridge = group.bridge
    if group.is_paused(tx.now_ms):
        return 0
    items = _Items(*_room(queue, messages_max), queue.settings.item_bytes_max)
    cursors: dict[int, int] = {}
    for partition in _in_turn(topic, bridge):
        start, end = floor(topic, group, partition), topic.next_offset(partition)
        stop = bridge.stop_at(partition, start)
        if start == end or (stop is not None and stop.retry_at_ms > tx.now_ms):
            continue
        cursors[partition] = _take(tx, topic, partition, start, items)
        if items.too_large:
            reason = _too_large(topic, partition, cursors[partition], items.too_large, queue)
            retry_at_ms = tx.now_ms + BRIDGE_RETRY_MS
            bridge.stop(partition, Stop(reason, partition, cursors[partition], retry_at_ms))
            items.too_large = 0
        elif cursors[partition] < end:
            tx.after_write(setattr, bridge, "turn", partition + 1)
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


def _too_large(topic: TopicState, partition: int, offset: int, size: int, queue: QueueState) -> str:
    return (
        f"message {offset} of partition {partition} of topic {topic.name!r} has {size} bytes; "
        f"item_bytes_max of queue {queue.name!r} is {queue.settings.item_bytes_max}"
    )


def _room(queue: QueueState, messages_max: int) -> tuple[int, int]:
    """How many messages the queue may get in one step, and of how many bytes."""
    settings, counters = queue.settings, queue.counters
    bytes_max = BRIDGE_BYTES_MAX
    if settings.items_max:
        messages_max = min(messages_max, settings.items_max - counters.items)
    if settings.bytes_max:
        bytes_max = min(bytes_max, settings.bytes_max - counters.contents_bytes)
    return messages_max, bytes_max


def _in_turn(topic: TopicState, bridge: BridgeState) -> list[int]:
    """The partitions. The one that the last step ended with is the last, so that none waits for the
    others."""
    total = topic.partitions
    return [(bridge.turn + each) % total for each in range(total)]


@dataclass(slots=True)
class _Items:
    """The items that a step adds."""

    messages_left: int
    bytes_left: int
    item_bytes_max: int
    contents: list[bytes] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    attributes: list[dict[str, str]] = field(default_factory=list)
    is_full: bool = False
    too_large: int = 0
    """The bytes of a message that the queue does not take."""

    def put(self, key: str, payload: bytes, attributes: bytes) -> bool:
        """Whether there is room for one more."""
        if self.item_bytes_max and len(payload) > self.item_bytes_max:
            self.too_large = len(payload)
            return False
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
    for piece in found.packed:
        attributes = piece.attributes or repeat(b"")
        for offset, payload, own in zip(count(piece.offset), piece.split(), attributes):
            if not items.put(_key(topic, partition, offset), payload, own):
                return offset
    return found.next_offset


def _key(topic: TopicState, partition: int, offset: int) -> str:
    """The number of the topic makes it another key if the topic is deleted and created again."""
    return f"{topic.name}/{partition}/{offset}#{topic.queue_id}"
