"""One topic in memory: its record as last written, its logs, and the objects that own the rest.

A topic is read from the store when it is first used. Its logs are opened when their partition is.
A fork has the messages of its ancestors up to the offset at which it began, without a copy of them:
its record says in which logs they are.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

from queueber.db.families import Family
from queueber.db.records.keys import NEVER_MS, queue_prefix
from queueber.db.records.log import LogBlock, LogHead
from queueber.db.records.queues import Counters, decode_counters
from queueber.db.records.topics import Inherited, TopicRecord, encode_topic
from queueber.db.store.contract import Reads, Store
from queueber.engine.kernel.noted_times import NotedTime, NotedTimes
from queueber.engine.kernel.transaction import Transaction
from queueber.engine.log import Limits, Log, block_from, open_log, trim_due_ms
from queueber.engine.queue.queue_state import QueueState
from queueber.engine.records.dedup_keys import DedupKeys
from queueber.engine.records.producers import Producers
from queueber.engine.records.retention import Retention
from queueber.engine.topics.compaction import Compaction
from queueber.engine.topics.group import Group, read_groups
from queueber.engine.topics.shared_groups import open_shared
from queueber.errors import InvalidArgument, invariant
from queueber.ids import QueueId
from queueber.limits import TTL_SLACK_PART
from queueber.model import TopicSettings

_UPDATES = ("settings", "alias", "logs", "is_closed", "sources")
"""Fields whose change is told as the last update of the topic; others change by its use."""

WhenOpened = Callable[[QueueState], None]
"""Called with each group that shares messages, when it is read from the store."""


class Stretch(NamedTuple):
    """The messages of a log between two offsets."""

    prefix: bytes
    first: int
    end: int


class Memory:
    """What a topic remembers for a while."""

    __slots__ = ("compaction", "keys", "producers", "retention")

    def __init__(self, store: Store, topic: "TopicState") -> None:
        self.retention = Retention()
        self.producers = Producers(self.retention)
        self.keys = DedupKeys(topic.name, self.retention)
        self.compaction = Compaction(store, self.retention, topic.log, topic.partitions)


class TopicState:
    """One topic. Only a transaction that is written replaces its record and counters."""

    __slots__ = (
        "__weakref__", "_groups", "_inherited", "_inherited_bytes", "_logs", "_memory",
        "_store", "_times", "_when_opened", "counters", "noted", "prefix", "queue_id", "record",
        "used_at_ms",
    )  # fmt: skip

    def __init__(
        self,
        store: Store,
        times: NotedTimes,
        number: QueueId,
        record: TopicRecord,
        when_opened: WhenOpened,
        *,
        is_new: bool = False,
    ) -> None:
        """Nothing is read of a topic that `is_new`: the store has nothing of it."""
        self._store = store
        self._times = times
        self._when_opened = when_opened
        self._groups: dict[str, Group] | None = {} if is_new else None
        self._memory: Memory | None = None
        self._inherited: tuple[tuple[Inherited, ...], dict[int, list[Inherited]]] = ((), {})
        self._inherited_bytes: dict[int, int] = {}
        self.queue_id = number
        self.prefix = queue_prefix(number)
        self.record = record
        stored = None if is_new else store.get(Family.COUNTERS, self.prefix)
        self.counters = Counters() if stored is None else decode_counters(stored)
        """Of what it remembers of producers and dedup ids; a topic has no items."""
        self.noted = NotedTime(times, None if is_new else store, number, number)
        self.used_at_ms = record.used_at_ms + (0 if is_new else self.ttl_slack_ms)
        """When it was last used. The record may be older by the slack, but not by more."""
        self._logs: dict[int, Log] = {}
        if is_new:
            self._logs = {
                at: Log(queue_prefix(log), LogHead(), {}) for at, log in enumerate(record.logs)
            }

    @property
    def memory(self) -> "Memory":
        """What it remembers of producers, dedup ids and keys. Most topics have nothing of it."""
        if self._memory is None:
            self._memory = Memory(self._store, self)
        return self._memory

    @property
    def name(self) -> str:
        return self.record.name

    @property
    def settings(self) -> TopicSettings:
        return self.record.settings

    @property
    def partitions(self) -> int:
        return len(self.record.logs)

    # --- its record -------------------------------------------------------------------------------

    def record_in(self, tx: Transaction[Any]) -> TopicRecord:
        """The record, with the changes of this transaction so far."""
        record: TopicRecord = tx.pending.get(self, self.record)
        return record

    def change(self, tx: Transaction[Any], **fields: Any) -> TopicRecord:
        """Write the record with other fields; the topic has them once it is written."""
        before = self.record_in(tx)
        record = before._replace(**fields)
        if any(fields[each] != getattr(before, each) for each in _UPDATES if each in fields):
            record = record._replace(updated_at_ms=tx.now_ms)
        if self not in tx.pending:
            tx.after_write(self._take_record, tx.pending)
        tx.pending[self] = record
        tx.batch.put(Family.TOPICS, self.prefix, encode_topic(record))
        return record

    def _take_record(self, pending: dict[object, Any]) -> None:
        self.record = pending[self]

    # --- its partitions ---------------------------------------------------------------------------

    def check_partition(self, partition: int) -> None:
        if not 0 <= partition < self.partitions:
            raise InvalidArgument(
                f"partition is {partition}; topic {self.name!r} has partitions 0 to "
                f"{self.partitions - 1}"
            )

    def log(self, partition: int) -> Log:
        """The log that new messages of a partition are appended to."""
        found = self._logs.get(partition)
        if found is None:
            prefix = queue_prefix(self.record.logs[partition])
            found = self._logs[partition] = open_log(self._store, prefix)
        return found

    def begin_log(self, tx: Transaction[Any], partition: int, head: LogHead) -> None:
        """A partition of a new topic does not begin at offset 0."""
        log = self._logs[partition] = Log(queue_prefix(self.record.logs[partition]), head, {})
        log.replace_head(tx, head)

    def stretches(self, partition: int) -> list[Stretch]:
        """The logs that have the messages of a partition, in order: its own is the last."""
        log = self.log(partition)
        own = Stretch(log.prefix, log.head.first_offset, log.head.next_offset)
        if not self.record.inherited:
            return [own]
        shared = self._inherited_in(partition)
        return [*(Stretch(queue_prefix(e.log), e.first, e.end) for e in shared), own]

    def _inherited_in(self, partition: int) -> list[Inherited]:
        """What a fork shares of a partition. A fork of many partitions has many stretches, and each
        poll of a group looks at all partitions."""
        inherited, by_partition = self._inherited
        if inherited is not self.record.inherited:
            by_partition = {}
            for each in self.record.inherited:
                by_partition.setdefault(each.partition, []).append(each)
            self._inherited = self.record.inherited, by_partition
            self._inherited_bytes = {}
        return by_partition.get(partition, [])

    def inherited_bytes(self, partition: int) -> int:
        """Bytes of the blocks that a fork shares, whole or in part. They do not change, so they are
        looked up once."""
        shared = self._inherited_in(partition) if self.record.inherited else ()
        if shared and partition not in self._inherited_bytes:
            size = 0
            for each in shared:
                ends = (each.first, each.end - 1)
                first, last = (block_from(self._store, queue_prefix(each.log), at) for at in ends)
                if first is not None and last is not None:
                    size += last.end_position - first.position
            self._inherited_bytes[partition] = size
        return self._inherited_bytes.get(partition, 0)

    def first_offset(self, partition: int) -> int:
        """The offset of the oldest message that is kept."""
        if self.record.inherited and (shared := self._inherited_in(partition)):
            return shared[0].first
        return self.log(partition).head.first_offset

    def next_offset(self, partition: int) -> int:
        return self.log(partition).head.next_offset

    def block_from(self, reads: Reads, partition: int, offset: int) -> LogBlock | None:
        """The block that has an offset of the log, in the topic's own log or an ancestor's.

        Only if the topic keeps the last message of each key, it may be a later one or None.
        """
        stretch = next(each for each in self.stretches(partition) if offset < each.end)
        return self._block_in(reads, stretch, offset)

    def _block_in(self, reads: Reads, stretch: Stretch, offset: int) -> LogBlock | None:
        """Where a fork begins, a block of its parent ends: the rest of it is not the fork's."""
        found = block_from(reads, stretch.prefix, offset)
        is_there = found is not None and found.first_offset <= offset
        keeps_last = self.record.settings.keeps_last_per_key
        invariant(is_there or keeps_last, "I15", topic=self.name, missing=offset)
        if found is not None and found.first_offset < stretch.end < found.end_offset:
            return replace(found, end_offset=stretch.end)
        return found

    def search(self, reads: Reads, partition: int, is_reached: Callable[[LogBlock], bool]) -> int:
        """The offset of the first block of which `is_reached` is true, or where the log ends.

        Once it is true of a block, it is true of all that follow.
        """
        stretches = self.stretches(partition)
        low, high = stretches[0].first, stretches[-1].end
        while low < high:
            middle = (low + high) // 2
            stretch = next(each for each in stretches if middle < each.end)
            block = self._block_in(reads, stretch, middle)
            if block is None:
                high = middle
            elif is_reached(block):
                # Where messages were replaced, the block may begin behind the offset.
                high = min(middle, max(block.first_offset, stretch.first))
            else:
                low = min(block.end_offset, stretch.end)
        return low

    # --- its groups -------------------------------------------------------------------------------

    @property
    def groups(self) -> dict[str, Group]:
        """By name; read when they are first asked for."""
        if self._groups is None:
            self._groups = read_groups(self._store, self)
        return self._groups

    def opened_groups(self) -> list[QueueId]:
        """The numbers of the groups that share messages and are in memory."""
        groups = (self._groups or {}).values()
        return [each.queue_id for each in groups if each.opened_queue is not None]

    def noted_of(self, group: Group) -> NotedTime:
        return NotedTime(self._times, self._store, group.queue_id, self.queue_id)

    def open_queue(self, group: Group) -> QueueState:
        queue = open_shared(self._store, self, group)
        self._when_opened(queue)
        return queue

    # --- what becomes due -------------------------------------------------------------------------

    def limits(self, acknowledged: int = 0) -> Limits:
        """What each partition keeps. A topic that refuses messages at its limits deletes none."""
        s = self.settings
        if self.record.forks or s.keeps_last_per_key:
            return Limits()  # forks share its messages; keys decide what is kept
        if s.refuses_when_full:
            return Limits(age_ms=s.retention_ms, acknowledged=acknowledged)
        return Limits(s.retention_ms, s.retention_bytes, s.retention_messages, acknowledged)

    def trim_due_ms(
        self, partition: int, now_ms: int, head: LogHead | None = None, acknowledged: int = 0
    ) -> int:
        limits = self.limits(acknowledged)
        return trim_due_ms(self.log(partition), limits, now_ms, head=head)

    @property
    def ttl_slack_ms(self) -> int:
        """How much later than in its record the topic may have been used."""
        return self.record.settings.ttl_ms // TTL_SLACK_PART

    @property
    def expires_at_ms(self) -> int:
        """When it is deleted if nobody uses it before; `NEVER_MS`: never."""
        settings = self.record.settings
        if settings.expires_at_ms:
            return settings.expires_at_ms
        return self.used_at_ms + settings.ttl_ms if settings.ttl_ms else NEVER_MS

    def is_alive(self, now_ms: int) -> bool:
        return not self.record.is_deleted and self.expires_at_ms > now_ms

    def use(self, now_ms: int) -> bool:
        """Somebody uses it now; whether that must be written (`note_use`)."""
        if not self.record.settings.ttl_ms:
            return False
        self.used_at_ms = max(self.used_at_ms, now_ms)
        return now_ms - self.record.used_at_ms >= max(1, self.ttl_slack_ms)

    def use_in(self, tx: Transaction[Any]) -> None:
        """As `use` and `note_use` once the transaction is written, unless the topic has expired:
        then it is too late. A call that is refused is no use."""
        if not self.record.settings.ttl_ms or self.expires_at_ms <= tx.now_ms:
            return
        if tx.now_ms - self.record_in(tx).used_at_ms >= max(1, self.ttl_slack_ms):
            self.note_use(tx)
        tx.after_write(self.use, tx.now_ms)

    def note_use(self, tx: Transaction[Any]) -> None:
        self.change(tx, used_at_ms=tx.now_ms)
