"""Events: the messages that tell of changes, gathered and then appended before the write.

All events of a transaction for one topic are one append, behind what the transaction publishes
there itself. Their order is that of the changes.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from queueber.engine.kernel.transaction import Transaction
from queueber.engine.topics.append import append, partition_of
from queueber.engine.topics.topic_state import TopicState
from queueber.engine.topics.topics import Topics
from queueber.errors import invariant
from queueber.ids import QueueId
from queueber.limits import (
    ATTRIBUTES_BYTES_MAX,
    ATTRIBUTES_MAX,
    EVENTS_BYTES_MAX,
    PAYLOAD_BYTES_MAX,
)
from queueber.model import NewMessages, Published

Places = list[tuple[TopicState, int, int]]
"""Topic, partition, and the offset of the first event there."""


class Event(NamedTuple):
    payload: bytes
    key: str
    attributes: Mapping[str, str]
    digest: int | None = None
    """Of what chooses its partition; None: the key does."""

    def partition(self, partitions: int) -> int:
        if self.digest is None:
            return partition_of(self.key, partitions)
        return self.digest % partitions


class EventLog:
    """Where events go."""

    def __init__(self, topics: Topics) -> None:
        self._topics = topics
        self.payload_bytes_max = PAYLOAD_BYTES_MAX
        """An event with more contents has its key only."""
        self.when_written: Callable[[Places], None] = lambda _: None
        """Called once events are written: nobody may read them before they are durable."""

    def gathered(self, tx: Transaction[Any]) -> "Gathered":
        """What the transaction will append."""
        found: Gathered | None = tx.pending.get(self)
        if found is None:
            found = tx.pending[self] = Gathered(self.payload_bytes_max)
            tx.before_write(self._append, tx, found)
        return found

    def _append(self, tx: Transaction[Any], gathered: "Gathered") -> None:
        places: Places = []
        for number, events in gathered.by_topic.items():
            topic = self._topics.load(number)
            invariant(topic is not None, "I20", topic=number)
            if topic is None or not topic.is_alive(tx.now_ms):
                continue  # it has expired: nobody reads it any more
            topic.use_in(tx)
            total = topic.partitions
            published = append(
                tx,
                self._topics,
                topic,
                NewMessages(
                    [each.payload for each in events],
                    [each.key for each in events],
                    [each.attributes for each in events],
                ),
                0 if total == 1 else [each.partition(total) for each in events],
            )
            places += [(topic, *each) for each in _first_offsets(published)]
        if places:
            tx.after_write(self.when_written, places)


class Gathered:
    """The events of one transaction."""

    __slots__ = ("_bytes_left", "_payload_bytes_max", "by_topic")

    def __init__(self, payload_bytes_max: int) -> None:
        self._payload_bytes_max = payload_bytes_max
        self._bytes_left = EVENTS_BYTES_MAX
        self.by_topic: dict[QueueId, list[Event]] = {}

    def has_room(self, size: int) -> bool:
        """Whether the contents of an event may have so many bytes; then they count."""
        if size > self._payload_bytes_max or size > self._bytes_left:
            return False
        self._bytes_left -= size
        return True

    def has_room_for_attributes(self, attributes: Mapping[str, str]) -> bool:
        """Whether a message may have them, and one of this write can; then they count."""
        if len(attributes) > ATTRIBUTES_MAX:
            return False
        size = sum(len(n.encode()) + len(v.encode()) for n, v in attributes.items())
        if size > ATTRIBUTES_BYTES_MAX or size > self._bytes_left:
            return False
        self._bytes_left -= size
        return True

    def put(self, topic: QueueId, event: Event) -> None:
        self.by_topic.setdefault(topic, []).append(event)


def _first_offsets(published: Published) -> Iterable[tuple[int, int]]:
    firsts: dict[int, int] = {}
    for partition, offset in zip(published.partitions, published.offsets, strict=True):
        firsts.setdefault(partition, offset)
    return firsts.items()


def to_json(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode(errors="replace")
