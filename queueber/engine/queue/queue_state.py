"""One queue in memory: its counters as last written, and the objects that own the rest.

Opening a store reads a few records of each queue and none of its items. Peek, scan and split read a
queue through a view, so the same code serves live queues and snapshots.
"""

from dataclasses import dataclass

from queueber.db.families import Family
from queueber.db.records.keys import (
    NEVER_MS,
    level_part,
    prefix_end,
    queue_prefix,
    split_queue_prefix,
)
from queueber.db.records.log import LogHead, block_key
from queueber.db.records.queues import Counters, decode_counters, decode_queue, encode_queue
from queueber.db.store.contract import Range, Reads, Snapshot, Store
from queueber.engine.caps.queue_caps import queue_caps
from queueber.engine.kernel.transaction import Noted, Transaction
from queueber.engine.log import Limits, Log, open_log, trim_due_ms
from queueber.engine.queue.blocks import Blocks
from queueber.engine.queue.changes import Changes
from queueber.engine.queue.dead_letters import DeadLetters
from queueber.engine.queue.fronts import Undelivered
from queueber.engine.queue.leases import Leases
from queueber.engine.queue.ready_index import ReadyIndex
from queueber.engine.queue.recent_blocks import RecentBlocks
from queueber.engine.queue.scheduled import Scheduled
from queueber.engine.records.batch_names import BatchNames
from queueber.engine.records.batches import Batches
from queueber.engine.records.dedup_keys import DedupKeys
from queueber.engine.records.producers import Producers
from queueber.engine.records.retention import Retention
from queueber.errors import StorageCorrupt
from queueber.ids import ItemId, QueueId
from queueber.model import QueueSettings

_WHOLE_RANGES = (Family.DELAYED, Family.LEASES, Family.DEAD)
_POINTS = (Family.ITEMS, Family.ATTEMPTS, Family.WAITS, Family.BATCHES, Family.BATCH_NAMES)


class QueueState:
    """One queue. Only a transaction that is written replaces its counters."""

    __slots__ = (
        "__weakref__", "batches", "blocks", "callbacks", "caps", "changes", "counters",
        "created_at_ms", "dead_letters", "is_deleted", "keys", "leases", "name", "noted",
        "paused_until_ms", "prefix", "producers", "queue_id", "ready", "results", "retention",
        "schedules", "settings", "undelivered",
    )  # fmt: skip

    def __init__(
        self,
        store: Store,
        blocks: Blocks,
        queue_id: QueueId,
        counters: Counters,
        name: str,
        created_at_ms: int,
        settings: QueueSettings,
        paused_until_ms: int = 0,
    ) -> None:
        """`blocks` has the contents of its items; the last four as in the queue's record."""
        self.queue_id = queue_id
        self.prefix = queue_prefix(queue_id)
        self.name = name
        self.settings = settings
        self.created_at_ms = created_at_ms
        self.counters = counters
        self.paused_until_ms = paused_until_ms
        self.is_deleted = False
        self.noted: Noted | None = None
        self.undelivered: Undelivered | None = None
        """Of a group that shares the messages of a topic: those that no consumer has had."""
        self.changes: Changes | None = None
        """Of a queue whose changes go to a topic: who publishes them."""
        self.caps = queue_caps(settings, counters)
        """Of a queue with caps: how many items polls may lease now."""
        self.schedules: Scheduled | None = None
        """Of a queue that some schedule adds items to: who adds them."""
        self.callbacks: Scheduled | None = None
        """Who adds the items of its batches' callbacks. None of a group, which has no batches."""
        self.blocks = blocks
        self.ready = ReadyIndex(store, self.prefix, counters.levels, self.blocks.left_ready)
        self.blocks.when_recent_dropped = self.ready.cut_windows
        self.leases = Leases(store, self.prefix, self.blocks)
        self.dead_letters = DeadLetters(store, self.prefix, self.blocks)
        self.results: Log = open_log(store, self.prefix)
        self.retention = Retention()
        self.batches = Batches(store, self.prefix, name, self.retention)
        self.producers = Producers(self.retention)
        self.keys = DedupKeys(name, self.retention, self.blocks.stored)

    def is_paused(self, now_ms: int) -> bool:
        return self.paused_until_ms > now_ms

    def leasable(self, now_ms: int) -> int:
        """How many ready items polls may lease now; a pause does not count."""
        counters, caps = self.counters, self.caps
        if caps is None:
            return counters.ready
        return min(counters.ready - counters.parked, caps.room(counters, now_ms))

    def rate_due_ms(self, now_ms: int) -> int:
        """When the queue's rate allows an item again; `NEVER_MS`: it does so now."""
        return NEVER_MS if self.caps is None else self.caps.due_ms(self.counters, now_ms)

    def results_due_ms(
        self, now_ms: int, *, head: LogHead | None = None, settings: QueueSettings | None = None
    ) -> int:
        """When the next results are due for deletion; with a new head or settings, if given."""
        limits = self.result_limits(settings or self.settings)
        return trim_due_ms(self.results, limits, now_ms, head=head)

    def dead_due_ms(self, now_ms: int, *, settings: QueueSettings | None = None) -> int:
        """When dead letters are to be read for those that are due for deletion; with new settings,
        if given."""
        age_ms = (settings or self.settings).dead_age_ms
        if not age_ms or not self.counters.dead:
            return NEVER_MS
        return self.dead_letters.due_ms(age_ms, now_ms)

    def result_limits(self, settings: QueueSettings) -> Limits:
        return Limits(
            age_ms=settings.result_age_ms,
            bytes_max=settings.result_bytes_max,
            acknowledged=min(self.results.readers.values(), default=0),
        )

    def write_record(
        self, tx: Transaction["QueueState"], settings: QueueSettings, paused_until_ms: int
    ) -> None:
        """Write settings and pause; the queue has them once the transaction is written."""
        record = encode_queue(self.name, self.created_at_ms, settings, paused_until_ms)
        tx.batch.put(Family.QUEUES, self.prefix, record)
        tx.after_write(self._take_record, settings, paused_until_ms)

    def _take_record(self, settings: QueueSettings, paused_until_ms: int) -> None:
        self.settings = settings
        self.caps = queue_caps(settings, self.counters)
        self.paused_until_ms = paused_until_ms


QueueTx = Transaction[QueueState]
"""A transaction of one queue: what every operation on items gets."""


def read_queue(store: Store, prefix: bytes, record: bytes, recent: RecentBlocks) -> QueueState:
    number = split_queue_prefix(prefix)
    try:
        counters = decode_counters(store.get(Family.COUNTERS, prefix) or b"")
        blocks = Blocks(store, prefix, recent)
        return QueueState(store, blocks, number, counters, *decode_queue(record))
    except Exception as error:
        raise unreadable_queue(number) from error


def unreadable_queue(number: QueueId) -> StorageCorrupt:
    return StorageCorrupt(
        f"the records of queue number {number} cannot be read; run 'queueber verify', and "
        "restore the store from a backup"
    )


@dataclass(frozen=True, slots=True)
class View:
    """What a reader sees of a queue, as it is now or as it was at a snapshot."""

    reads: Reads
    prefix: bytes
    counters: Counters
    results: Log
    dead_low: ItemId
    """No dead letter has a lower id."""
    batches: BatchNames
    blocks: Blocks


def live_view(store: Store, queue: QueueState) -> View:
    """The queue as it is. For one read: it may or may not see later changes."""
    low, names = queue.dead_letters.low, queue.batches.names
    return View(store, queue.prefix, queue.counters, queue.results, low, names, queue.blocks)


def take_view(store: Store, queue: QueueState) -> tuple[View, Snapshot]:
    """The queue as it is now, until the snapshot is closed.

    Its cost does not depend on how many items there are.
    """
    prefix, log = queue.prefix, queue.results
    # A transaction replaces counters and heads and leaves the old ones as they are.
    counters, results = queue.counters, Log(log.prefix, log.head, {})
    ranges: list[Range] = [(family, prefix_end(prefix)) for family in _WHOLE_RANGES]
    # One range for each level: a scan does not read the deleted entries at the front of the next.
    ranges += [(Family.VISIBILITY_INDEX, level_end(prefix, level)) for level in counters.levels]
    ranges.append((Family.LOG_BLOCKS, block_key(log.prefix, log.head.next_offset)))
    snapshot = store.snapshot(ranges, _POINTS)
    names = BatchNames(snapshot, prefix)
    low, blocks = queue.dead_letters.low, queue.blocks
    return View(snapshot, prefix, counters, results, low, names, blocks), snapshot


def level_end(prefix: bytes, level: int) -> bytes:
    """The first key after a level of ready items."""
    return prefix + level_part(level) + b"\xff"
