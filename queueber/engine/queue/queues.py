"""Queues: create, configure, delete, and their statistics."""

from collections.abc import Callable, Iterator
from dataclasses import fields
from functools import partial
from typing import Any

from queueber.db.families import QUEUE_FAMILIES, Family
from queueber.db.records.keys import prefix_end, queue_prefix, split_due_part
from queueber.db.records.queues import Counters, encode_counters, encode_queue
from queueber.db.store.contract import Store
from queueber.engine.caps.queue_caps import queue_caps
from queueber.engine.caps.review import change_caps
from queueber.engine.kernel.transaction import Kernel, Transaction
from queueber.engine.queue.blocks import Blocks
from queueber.engine.queue.queue_state import QueueState, QueueTx, read_queue
from queueber.engine.queue.recent_blocks import RecentBlocks
from queueber.errors import AlreadyExists, NotFound, ResourceExhausted
from queueber.ids import QueueId
from queueber.limits import ID_BYTES, PARKED_LEVEL, QUEUES_MAX
from queueber.model import QueueSettings, Stats

LAST_ID_KEY = b"last_id"
RECLAIM_KEY = b"reclaim"
HIGHEST_PREFIX = b"\xff" * 4

_COUNTED = [each.name for each in fields(Stats) if each.name in {c.name for c in fields(Counters)}]
"""What statistics have of the counters, by the same name."""

OnQueue = Callable[[QueueState], None]


class Queues:
    """All queues of a store."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._recent = RecentBlocks()
        self._when_opened: list[OnQueue] = []
        self._when_deleted: list[OnQueue] = []
        self.by_name: dict[str, QueueState] = {}
        self.by_id: dict[QueueId, QueueState] = {}
        store = kernel.store
        self._numbers = kernel.numbers
        self.retired_last_id = store.get(Family.DEFAULT, LAST_ID_KEY) or bytes(ID_BYTES)
        """The newest id of all deleted queues: every new id is greater."""
        self.reclaims = [
            key[len(RECLAIM_KEY) :]
            for key, _ in store.walk(Family.DEFAULT, RECLAIM_KEY, RECLAIM_KEY + HIGHEST_PREFIX)
        ]
        """The prefixes of deleted queues whose disk space is not reclaimed yet."""
        kernel.ids.continue_after(self.retired_last_id)

    def register(self, when_opened: OnQueue, when_deleted: OnQueue) -> None:
        """Call these when a queue is opened and when one is deleted."""
        self._when_opened.append(when_opened)
        self._when_deleted.append(when_deleted)

    def read(self) -> None:
        """Take the queues of the store into memory."""
        store = self._kernel.store
        for prefix, record in store.walk(Family.QUEUES, b"", HIGHEST_PREFIX):
            queue = read_queue(store, prefix, record, self._recent)
            self._kernel.ids.continue_after(queue.counters.last_id)
            self._opened(queue)

    def __iter__(self) -> Iterator[QueueState]:
        return iter(self.by_name.values())

    def __contains__(self, name: object) -> bool:
        return name in self.by_name

    def get(self, name: str) -> QueueState:
        found = self.by_name.get(name)
        if found is None:
            raise NotFound(f"there is no queue {name!r}; create it, or check the name")
        return found

    def create(self, tx: Transaction[None], name: str, settings: QueueSettings) -> bool:
        """Create the queue; False when it exists with the same settings."""
        existing = self.by_name.get(name)
        if existing is not None:
            if existing.settings != settings:
                raise AlreadyExists(
                    f"queue {name!r} exists with other settings; change them with configure"
                )
            return False
        if len(self.by_name) >= QUEUES_MAX:
            raise ResourceExhausted(
                f"the server has {QUEUES_MAX} queues, the limit; delete one first"
            )
        store, queue_id = self._kernel.store, self._numbers.take(tx)
        blocks = Blocks(store, queue_prefix(queue_id), self._recent)
        queue = QueueState(store, blocks, queue_id, Counters(), name, tx.now_ms, settings)
        tx.batch.put(Family.QUEUES, queue.prefix, encode_queue(name, tx.now_ms, settings))
        tx.batch.put(Family.COUNTERS, queue.prefix, encode_counters(queue.counters))
        tx.after_write(self._opened, queue)
        return True

    def _opened(self, queue: QueueState) -> None:
        self.by_name[queue.name] = self.by_id[queue.queue_id] = queue
        for tell in self._when_opened:
            tell(queue)

    def delete(self, tx: Transaction[None], name: str) -> bool:
        """Delete the queue with all its items; False when there is none.

        One range deletion for each family: the cost does not depend on how many items there are.
        The disk space is reclaimed later, see `reclaim_slices`.
        """
        queue = self.by_name.get(name)
        if queue is None:
            return False
        if queue.changes is not None:
            queue.changes.queue_deleted(tx)
        for family in QUEUE_FAMILIES:
            tx.batch.delete_range(family, queue.prefix, prefix_end(queue.prefix))
        # The counters of the queue, which had its last id, are deleted with it.
        last_id = max(self.retired_last_id, queue.counters.last_id)
        tx.batch.put(Family.DEFAULT, LAST_ID_KEY, last_id)
        self.reclaim(tx, queue.prefix)
        tx.after_write(self._deleted, queue, last_id)
        return True

    def reclaim(self, tx: Transaction[Any], prefix: bytes) -> None:
        """Have the disk space of a range that is deleted reclaimed."""
        tx.batch.put(Family.DEFAULT, RECLAIM_KEY + prefix, b"")
        tx.after_write(self.reclaims.append, prefix)

    def _deleted(self, queue: QueueState, last_id: bytes) -> None:
        self.retired_last_id = last_id
        del self.by_name[queue.name], self.by_id[queue.queue_id]
        self._kernel.agenda.forget(queue.queue_id)
        queue.blocks.forget_recent()
        queue.is_deleted = True
        for tell in self._when_deleted:
            tell(queue)

    def reclaimed(self, tx: Transaction[None], prefix: bytes) -> None:
        """Note that all the disk space of a deleted queue is reclaimed."""
        tx.batch.delete(Family.DEFAULT, RECLAIM_KEY + prefix)
        tx.after_write(self.reclaims.remove, prefix)


def reclaim_slices(store: Store, prefix: bytes) -> Iterator[Callable[[], None]]:
    """Free the disk space of a deleted queue, slice by slice.

    A range deletion takes effect at once, but files shrink only when RocksDB compacts them, which
    may never happen if nothing else is written there. A slice is one family and a few files; it may
    run in any thread while the server answers calls. After a restart the rest is done.
    """
    bounds = store.slices(prefix, prefix_end(prefix))
    for family in QUEUE_FAMILIES:
        for start, stop in bounds:
            yield partial(store.reclaim, family, start, stop)


def configure(tx: QueueTx, settings: QueueSettings) -> None:
    """Replace the settings. They apply to later calls; stored items stay as they are."""
    queue = tx.queue
    change_caps(tx, settings)
    queue.write_record(tx, settings, queue.paused_until_ms)
    tx.due(queue.results_due_ms(tx.now_ms, settings=settings))
    tx.due(queue.dead_due_ms(tx.now_ms, settings=settings))
    if (caps := queue_caps(settings, tx.counters)) is not None:
        caps.correct(tx)
        tx.due(caps.due_ms(tx.counters, tx.now_ms))


def queue_stats(queue: QueueState, *, waiting_polls: int, now_ms: int) -> Stats:
    counters, head = queue.counters, queue.results.head
    counted = {name: getattr(counters, name) for name in _COUNTED}
    if queue.undelivered is not None:
        counted["ready"] += queue.undelivered.count()
    return Stats(
        name=queue.name,
        settings=queue.settings,
        created_at_ms=queue.created_at_ms,
        oldest_claimable_age_ms=oldest_claimable_age_ms(queue, now_ms),
        waiting_polls=waiting_polls,
        paused_until_ms=queue.paused_until_ms if queue.is_paused(now_ms) else 0,
        results=head.next_offset - head.first_offset,
        result_bytes=head.kept_bytes,
        **counted,
    )


def oldest_claimable_age_ms(queue: QueueState, now_ms: int) -> int:
    """How long the oldest item that a poll could get now has been ready; 0 if there is none."""
    if queue.is_paused(now_ms):
        return 0
    oldest_ms = now_ms
    for level in queue.counters.levels:
        if level >= PARKED_LEVEL:
            continue
        ((due, _), *_) = queue.ready.first(queue.counters, level, 1)
        oldest_ms = min(oldest_ms, split_due_part(due)[0])
    return now_ms - oldest_ms
