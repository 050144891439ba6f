"""Shared groups: many consumers lease messages of a topic, and acknowledge each.

Such a group is a queue. It has counters, leases, ready, delayed and dead entries of its own, and
all rules of a queue hold; only its contents are in the logs of the topic, and the id of an item is
the reference of a message. Messages that no consumer has had have no entries. For each partition a
position says where they begin: a poll first takes messages that came back, then those from the
positions on.

The topic deletes messages at its own limits. Those that a group has ready, delayed or dead then
vanish from it, when a poll comes across them or in the background, and count as cancelled. One that
is leased stays until its lease ends, and can be acknowledged.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from queueber.db.families import Family
from queueber.db.records.cutting import part
from queueber.db.records.keys import NEVER_MS
from queueber.db.records.log import decode_offset, encode_offset
from queueber.db.records.queues import Counters, decode_counters
from queueber.db.records.runs import Run
from queueber.db.records.topics import position_key
from queueber.db.store.contract import Store
from queueber.engine.kernel.due_scan import Done
from queueber.engine.kernel.transaction import Transaction
from queueber.engine.queue.blocks import BlockReader
from queueber.engine.queue.fronts import Front
from queueber.engine.queue.queue_state import QueueState, QueueTx
from queueber.engine.queue.remove import finish
from queueber.engine.records.batches import Side
from queueber.engine.topics.group import Group
from queueber.engine.topics.group_entries import (
    lowest_leased,
    lowest_waiting,
    take_dead,
    take_leased,
    take_waiting,
)
from queueber.engine.topics.group_fronts import ReturnedFront, UndeliveredFront
from queueber.engine.topics.message_blocks import MessageBlocks, MessageReader, Messages
from queueber.engine.topics.partition_window import window_front
from queueber.errors import ResourceExhausted
from queueber.ids import split_reference
from queueber.limits import GROUP_RESET_MAX
from queueber.model import QueueSettings


class SharedGroup(QueueState):
    """A group of a topic, as a queue."""

    __slots__ = ("group", "messages")

    def __init__(self, store: Store, topic: Messages, group: Group) -> None:
        stored = store.get(Family.COUNTERS, group.prefix)
        record = group.record
        super().__init__(
            store,
            MessageBlocks(store, group.prefix, topic),
            group.queue_id,
            Counters() if stored is None else decode_counters(stored),
            f"{topic.name}/{group.name}",
            record.created_at_ms,
            record.settings.leases,
            record.paused_until_ms,
        )
        self.group = group
        self.noted = group.noted
        self.undelivered = self.messages = SharedMessages(store, topic, group)

    def write_record(
        self, tx: Transaction[QueueState], settings: QueueSettings, paused_until_ms: int
    ) -> None:
        """As that of a queue; the record of a group is among those of its topic."""
        changed = replace(self.group.settings, leases=settings)
        self.group.change(tx, settings=changed, paused_until_ms=paused_until_ms)
        tx.after_write(self._take_record, settings, paused_until_ms)


class SharedMessages:
    """The messages of the topic, as far as the group is concerned."""

    __slots__ = ("_group", "_looked_at", "positions", "settled", "store", "topic")

    def __init__(self, store: Store, topic: Messages, group: Group) -> None:
        self.store = store
        self._group = group
        self.topic = topic
        keys = [position_key(group.prefix, each) for each in range(topic.partitions)]
        self.positions: dict[int, int] = {
            partition: decode_offset(value)
            for partition, value in enumerate(store.get_many(Family.POSITIONS, keys))
            if value is not None
        }
        """The offset of the next message that no consumer has had. A partition that was added
        after the group, or that the group has not begun, has none until then, and begins at 0."""
        self._looked_at: dict[int, int] = {}
        """For each partition an offset before which the group has no entries but leases."""
        self.settled: dict[int, int] = {}
        """For each partition an offset before which it has none but dead letters. A search from
        the start would come across every entry that was deleted since."""

    def count(self, partition: int | None = None) -> int:
        topic, positions = self.topic, self.positions
        count = 0
        for each in range(topic.partitions) if partition is None else (partition,):
            begin = max(positions.get(each, 0), topic.first_offset(each))
            count += topic.next_offset(each) - begin
        return count

    def move(self, tx: Transaction[Any], offsets: Mapping[int, int]) -> None:
        """Write positions; the group has them once they are written."""
        put_positions(tx, self._group, offsets)
        tx.after_write(self.positions.update, offsets)

    # --- polls ------------------------------------------------------------------------------------

    def allowed(self, tx: Transaction[Any], counts: Sequence[int]) -> Sequence[int]:
        self.topic.use_in(tx)
        if self.has_lost():
            tx.due(tx.now_ms)
        limit = self._group.settings.in_flight_max
        if not limit:
            return counts
        left = max(0, limit - tx.counters.leased)
        allowed: list[int] = []
        for count in counts:
            allowed.append(min(count, left))
            left -= allowed[-1]
        return allowed

    def fronts(
        self, queue: QueueState, blocks: BlockReader, count: int, partition: int | None
    ) -> Sequence[Front]:
        assert isinstance(blocks, MessageReader)
        if partition is not None:
            return [window_front(self, queue, blocks, partition, count)]
        levels = sorted(queue.counters.levels)
        returned = [ReturnedFront(queue, blocks, level, count) for level in levels]
        return [*returned, UndeliveredFront(self, queue, blocks)]

    def delivered(self, tx: QueueTx, letters: Sequence[Run]) -> list[Run]:
        tx.after_write(self.settled.clear)
        blocks = tx.queue.blocks.reader()
        delivered: list[Run] = []
        others: list[Run] = []
        for run in letters:
            partition, last = split_reference(run.last)
            behind = last + 1 - self.positions.get(partition, 0)
            count = min(run.count, max(0, run.count - behind))
            if count:
                delivered.append(part(run, 0, count, blocks.sizes(run)))
            if count < run.count:
                others.append(part(run, count, run.count, blocks.sizes(run)))
        if others:
            finish(tx, others, None)
            tx.counters.cancelled_total += sum([run.count for run in others])
        return delivered

    # --- messages that the topic deletes ----------------------------------------------------------

    def has_lost(self) -> bool:
        looked_at = self._looked_at
        return any(
            self.topic.first_offset(each) > looked_at.get(each, 0)
            for each in range(self.topic.partitions)
        )

    def drop_lost(self, tx: QueueTx, limit: int) -> Done:
        """Only what retention and trims delete: what was replaced is found when it is polled."""
        dropped = 0
        again_ms: int | None = None
        for partition in range(self.topic.partitions):
            first = self.topic.first_offset(partition)
            if first <= self._looked_at.get(partition, 0):
                continue
            waiting = take_waiting(tx, partition, first, limit - dropped)
            if waiting:
                finish(tx, waiting, Side.DEAD)
            letters = take_dead(tx, partition, first, limit - dropped)
            if letters:
                finish(tx, letters, None)
            count = sum([run.count for run in (*waiting, *letters)])
            tx.counters.cancelled_total += count
            dropped += count
            if dropped >= limit:
                return Done(dropped, tx.now_ms)
            if lowest_leased(self.store, tx.queue, partition, 0, first) < first:
                # Those that are leased may come back.
                again_ms = max(tx.now_ms + 1, tx.counters.lease_due_ms)
            else:
                tx.after_write(self._looked_at.__setitem__, partition, first)
        return Done(dropped, again_ms)


def open_shared(store: Store, topic: Messages, group: Group) -> SharedGroup:
    return SharedGroup(store, topic, group)


def shared(group: Group) -> SharedGroup:
    queue = group.queue
    assert isinstance(queue, SharedGroup)
    return queue


def put_positions(tx: Transaction[Any], group: Group, offsets: Mapping[int, int]) -> None:
    for partition, offset in offsets.items():
        key = position_key(group.prefix, partition)
        tx.batch.put(Family.POSITIONS, key, encode_offset(offset))


def floor(group: Group, partition: int) -> int:
    """The offset of the oldest message that the group may still deliver, or is working on."""
    queue = shared(group)
    store, messages = queue.messages.store, queue.messages
    first = messages.topic.first_offset(partition)
    position = max(first, messages.positions.get(partition, 0))
    return min(
        position,
        lowest_waiting(store, queue, partition, first, position),
        lowest_leased(store, queue, partition, first, position),
    )


def lag(group: Group) -> int:
    queue = shared(group)
    counters = queue.counters
    return counters.ready + counters.delayed + counters.leased + queue.messages.count()


def pause(tx: Transaction[Any], group: Group, until_ms: int) -> None:
    queue = group.queue
    part = tx.join(queue)
    queue.write_record(part, queue.settings, until_ms)
    part.due(until_ms or NEVER_MS)


def reset(tx: Transaction[Any], group: Group, offsets: Mapping[int, int]) -> None:
    """Move the positions of partitions, and drop what came after them but for dead letters."""
    queue = shared(group)
    part, counters = tx.join(queue), queue.counters
    entries = counters.ready + counters.delayed + counters.leased
    if entries > GROUP_RESET_MAX:
        raise ResourceExhausted(
            f"group {queue.name!r} has {entries} messages that are leased or to be retried; one "
            f"with more than {GROUP_RESET_MAX} cannot be reset: delete it and create it again"
        )
    gone = take_leased(part, offsets)
    for partition in offsets:
        end = queue.messages.topic.next_offset(partition)
        gone += take_waiting(part, partition, end, entries)
    if gone:
        finish(part, gone, Side.DEAD)
        part.counters.cancelled_total += sum([run.count for run in gone])
    queue.messages.move(part, offsets)
    part.after_write(queue.messages.settled.clear)
