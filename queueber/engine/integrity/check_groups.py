"""The check of a topic's groups: their records, and how far each is in every partition."""

from collections.abc import Iterator, Sequence

from queueber.db.families import Family
from queueber.db.records.keys import PREFIX_BYTES, prefix_end, queue_prefix
from queueber.db.records.log import LogHead, decode_offset
from queueber.db.records.queues import Counters, decode_counters
from queueber.db.records.topics import (
    GroupRecord,
    Inherited,
    TopicRecord,
    agenda_key,
    decode_group,
    split_group_key,
)
from queueber.db.store.contract import Store
from queueber.engine.integrity.check_shared import SharedCheck, TopicBlocks
from queueber.engine.integrity.queue_entries import CheckedQueue, QueueEntries, Violation, readable
from queueber.engine.integrity.records import RecordsCheck
from queueber.limits import GROUPS_MAX
from queueber.model import GroupKind


class GroupsCheck:
    """I17, for the groups of one topic."""

    def __init__(
        self, store: Store, name: str, number: int, record: TopicRecord, heads: Sequence[LogHead]
    ) -> None:
        """`heads` has that of the log of each partition."""
        self._store = store
        self._name = name
        self._prefix = queue_prefix(number)
        self._record = record
        self._heads = heads
        self._groups: dict[bytes, GroupRecord] = {}
        self.has_to_move = False
        """Whether there are messages that a bridge adds to its queue."""

    def run(self) -> Iterator[Violation]:
        yield from self._read()
        for partition, head in enumerate(self._heads):
            yield from self._check_cursors(partition, head)
        for name, group in self._groups.items():
            if group.settings.kind is GroupKind.SHARED:
                yield from self.check_shared(name, group)

    def _broken(self, text: str) -> Violation:
        return Violation("I17", self._name, text)

    def _read(self) -> Iterator[Violation]:
        count = 0
        for key, value in self._store.walk(Family.GROUPS, self._prefix, prefix_end(self._prefix)):
            count += 1
            group = readable(decode_group, value)
            if group is None or readable(split_group_key, key) is None:
                yield self._broken(f"the group {key[PREFIX_BYTES:]!r} cannot be read")
                continue
            self._groups[key[PREFIX_BYTES:]] = group
            if len(group.began_at) > len(self._heads):
                text = f"the group {key[PREFIX_BYTES:]!r} began in {len(group.began_at)} partitions"
                yield self._broken(f"{text}; the topic has {len(self._heads)}")
        if count > GROUPS_MAX:
            yield self._broken(f"it has {count} groups; the limit is {GROUPS_MAX}")

    def _check_cursors(self, partition: int, head: LogHead) -> Iterator[Violation]:
        """The readers of a partition's log are its ordered groups and bridges."""
        prefix = queue_prefix(self._record.logs[partition])
        for key, value in self._store.walk(Family.LOGS, prefix + b"\0", prefix_end(prefix)):
            name = key[PREFIX_BYTES:]
            group = self._groups.get(name)
            if group is None or group.settings.kind is GroupKind.SHARED:
                yield self._broken(f"partition {partition} has a cursor of {name!r}, but no group")
            yield from self._check_offset(f"{name!r}", partition, value, head)
            if group is not None and group.settings.kind is GroupKind.QUEUE:
                offset = readable(decode_offset, value) or 0
                self.has_to_move |= max(offset, head.first_offset) < head.next_offset

    def _check_offset(
        self, group: str, partition: int, value: bytes, head: LogHead
    ) -> Iterator[Violation]:
        offset = readable(decode_offset, value)
        if offset is None:
            yield self._broken(f"where group {group} is in partition {partition} cannot be read")
        elif offset > head.next_offset:
            text = f"group {group} is at {offset} of partition {partition}, which ends at "
            yield self._broken(f"{text}{head.next_offset}")

    def check_shared(self, name: bytes, group: GroupRecord) -> Iterator[Violation]:
        prefix = queue_prefix(group.number)
        positions: list[int | None] = [None] * len(self._heads)
        for key, value in self._store.walk(Family.POSITIONS, prefix, prefix_end(prefix)):
            partition = int.from_bytes(key[PREFIX_BYTES:])
            if partition >= len(self._heads):
                yield self._broken(f"group {name!r} is in partition {partition}, which is none")
                continue
            yield from self._check_offset(f"{name!r}", partition, value, self._heads[partition])
            positions[partition] = readable(decode_offset, value)
        stored = self._store.get(Family.COUNTERS, prefix)
        counters = Counters() if stored is None else decode_counters(stored)
        queue = CheckedQueue(self._name, QueueEntries(self._store, prefix), counters)
        shared = SharedCheck(queue, self._blocks(), positions)
        yield from shared.run()
        yield from RecordsCheck(queue).run(shared.batches)
        is_busy = counters.leases or counters.delayed or counters.forgets
        if is_busy and self._store.get(Family.AGENDA, agenda_key(group.number)) is None:
            text = f"group {name!r} has something to do, and no noted time"
            yield Violation("I18", self._name, text)

    def _blocks(self) -> TopicBlocks:
        return topic_blocks(self._store, self._record, self._heads)


def topic_blocks(store: Store, record: TopicRecord, heads: Sequence[LogHead]) -> TopicBlocks:
    """The messages of a topic, its own and those that it shares."""
    stretches = [
        [
            *(each for each in record.inherited if each.partition == partition),
            Inherited(partition, record.logs[partition], head.first_offset, head.next_offset),
        ]
        for partition, head in enumerate(heads)
    ]
    return TopicBlocks(store, stretches, keeps_last=record.settings.keeps_last_per_key)
