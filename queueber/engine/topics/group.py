"""One group of a topic in memory: its record as last written."""

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

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
    def name(self) -> str: ...
    @property
    def prefix(self) -> bytes: ...
    def noted_of(self, group: "Group") -> NotedTime: ...
    def open_queue(self, group: "Group") -> QueueState: ...


class Stop(NamedTuple):
    """Why a bridge does not go on; without a place it goes on nowhere."""

    reason: str
    partition: int | None = None
    offset: int | None = None
    retry_at_ms: int = 0


class BridgeState:
    """What a bridge remembers between two steps. Nothing of it is stored: after a restart the first
    step finds it again."""

    __slots__ = ("refusal", "retry_at_ms", "stops", "turn", "untold")

    def __init__(self) -> None:
        self.refusal = ""
        """Why the queue took nothing in the last step."""
        self.retry_at_ms = 0
        """The queue is not tried before this time."""
        self.turn = 0
        """The partition that the next step begins with."""
        self.stops: dict[int, Stop] = {}
        """The messages that the queue does not take, by partition."""
        self.untold: list[Stop] = []
        """Stops that operators have not heard of yet."""

    def stop(self, partition: int, stop: Stop) -> None:
        known = self.stops.get(partition)
        if known is None or known.offset != stop.offset:
            self.untold.append(stop)
        self.stops[partition] = stop

    def refuse(self, reason: str, *, is_told: bool) -> None:
        if is_told and reason != self.refusal:
            self.untold.append(Stop(reason))
        self.refusal = reason

    def stop_at(self, partition: int, offset: int) -> Stop | None:
        """The stop of a partition, if that is where the group still is."""
        stop = self.stops.get(partition)
        return stop if stop is not None and stop.offset == offset else None

    def stopped_by(self, waiting: Mapping[int, int]) -> str:
        """Why messages are not added; "": they are. `waiting` has for each partition with messages
        that were not added the offset of the first one."""
        if not waiting:
            return ""
        stops = [self.stop_at(partition, offset) for partition, offset in waiting.items()]
        reasons = [each.reason for each in stops if each is not None]
        if self.refusal:
            reasons.insert(0, self.refusal)
        more = f", and {len(reasons) - 1} more partitions are stopped" if len(reasons) > 1 else ""
        return reasons[0] + more if reasons else ""


class Group:
    """One group. Only a transaction that is written replaces its record."""

    __slots__ = (
        "_bridge",
        "_noted",
        "_queue",
        "_topic",
        "name",
        "prefix",
        "queue_id",
        "record",
    )  # fmt: skip

    def __init__(self, topic: Opener, name: str, record: GroupRecord) -> None:
        self._topic = topic
        self._queue: QueueState | None = None
        self._noted: NotedTime | None = None
        self._bridge: BridgeState | None = None
        self.name = name
        self.record = record
        self.queue_id = QueueId(record.number)
        self.prefix = queue_prefix(record.number)

    @property
    def topic_name(self) -> str:
        return self._topic.name

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
    def bridge(self) -> BridgeState:
        """What a group that adds messages to a queue remembers."""
        if self.kind is not GroupKind.QUEUE:
            raise FailedPrecondition(
                f"group {self.name!r} is of kind {self.kind.value!r}; only groups of kind 'queue' "
                "add messages to a queue"
            )
        if self._bridge is None:
            self._bridge = BridgeState()
        return self._bridge

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
