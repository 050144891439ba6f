"""One group of a topic in memory: its record as last written."""

from typing import Any, Protocol

from queueber.db.families import Family
from queueber.db.records.keys import prefix_end, queue_prefix
from queueber.db.records.topics import (
    GroupRecord,
    decode_group,
    encode_group,
    group_key,
    split_group_key,
)
from queueber.db.store.contract import Store
from queueber.engine.kernel.noted_times import NotedTime
from queueber.engine.kernel.transaction import Transaction
from queueber.engine.queue.queue_state import QueueState
from queueber.errors import FailedPrecondition, StorageCorrupt
from queueber.ids import QueueId
from queueber.limits import GROUPS_MAX
from queueber.model import GroupKind, GroupSettings


class Opener(Protocol):
    """The topic, as the parent of its groups."""

    @property
    def prefix(self) -> bytes: ...
    def noted_of(self, group: "Group") -> NotedTime: ...
    def open_queue(self, group: "Group") -> QueueState: ...


class Group:
    """One group. Only a transaction that is written replaces its record."""

    __slots__ = (
        "_noted",
        "_queue",
        "_topic",
        "name",
        "prefix",
        "queue_id",
        "record",
        "retry_at_ms",
        "turn",
    )  # fmt: skip

    def __init__(self, topic: Opener, name: str, record: GroupRecord) -> None:
        self._topic = topic
        self._queue: QueueState | None = None
        self._noted: NotedTime | None = None
        self.name = name
        self.retry_at_ms = 0
        """Of a bridge: its queue had no room, and is not tried before this time."""
        self.turn = 0
        """Of a bridge: the partition that its next step begins with."""
        self.record = record
        self.queue_id = QueueId(record.number)
        self.prefix = queue_prefix(record.number)

    @property
    def kind(self) -> GroupKind:
        return self.record.settings.kind

    @property
    def settings(self) -> GroupSettings:
        return self.record.settings

    @property
    def key(self) -> bytes:
        return group_key(self._topic.prefix, self.name)

    @property
    def noted(self) -> NotedTime:
        """When to look at a group that shares messages, as the store knows it."""
        if self._noted is None:
            self._noted = self._topic.noted_of(self)
        return self._noted

    @property
    def queue(self) -> QueueState:
        """What a group that shares messages leases them with; read when it is first used."""
        if self.kind is not GroupKind.SHARED:
            raise FailedPrecondition(
                f"group {self.name!r} is of kind {self.kind.value!r}; only groups of kind 'shared' "
                "lease messages"
            )
        if self._queue is None:
            self._queue = self._topic.open_queue(self)
        return self._queue

    @property
    def opened_queue(self) -> QueueState | None:
        """The queue, if it was used already."""
        return self._queue

    def is_paused(self, now_ms: int) -> bool:
        return self.record.paused_until_ms > now_ms

    def change(self, tx: Transaction[Any], **fields: Any) -> None:
        """Write the record with other fields; the group has them once it is written."""
        record: GroupRecord = tx.pending.get(self, self.record)
        if self not in tx.pending:
            tx.after_write(self._take_record, tx.pending)
        tx.pending[self] = record = record._replace(**fields)
        tx.batch.put(Family.GROUPS, self.key, encode_group(record))

    def _take_record(self, pending: dict[object, Any]) -> None:
        self.record = pending[self]


def read_groups(store: Store, topic: Opener) -> dict[str, Group]:
    """The groups of a topic by name."""
    prefix = topic.prefix
    found = store.scan(Family.GROUPS, prefix, prefix_end(prefix), GROUPS_MAX + 1)
    try:
        names = [split_group_key(key) for key, _ in found]
        records = [decode_group(value) for _, value in found]
    except Exception as error:
        raise StorageCorrupt(
            f"the groups of topic number {int.from_bytes(prefix)} cannot be read; run "
            "'queueber verify', and restore the store from a backup"
        ) from error
    return {name: Group(topic, name, each) for name, each in zip(names, records, strict=True)}
