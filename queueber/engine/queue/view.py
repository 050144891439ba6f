"""A view: what peek and scan read of a queue, as it is now or as it was at a snapshot.

Both read through a view, so the same code serves live queues and snapshots.
"""

from dataclasses import dataclass

from queueber.db.families import Family
from queueber.db.records.keys import level_part, prefix_end
from queueber.db.records.log import block_key
from queueber.db.records.queues import Counters
from queueber.db.store.contract import Range, Reads, Snapshot, Store
from queueber.engine.log import Log
from queueber.engine.queue.queue_state import QueueState
from queueber.engine.records.batches import BatchNames
from queueber.ids import ItemId

_WHOLE_RANGES = (Family.DELAYED, Family.LEASES, Family.DEAD)
_POINTS = (Family.ITEMS, Family.ATTEMPTS, Family.BATCHES, Family.BATCH_NAMES)


@dataclass(frozen=True, slots=True)
class View:
    reads: Reads
    prefix: bytes
    counters: Counters
    results: Log
    dead_low: ItemId
    """No dead letter has a lower id."""
    batches: BatchNames


def live_view(store: Store, queue: QueueState) -> View:
    """The queue as it is. For one read: it may or may not see later changes."""
    return View(
        store,
        queue.prefix,
        queue.counters,
        queue.results,
        queue.dead_letters.low,
        queue.batches.names,
    )


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
    return View(snapshot, prefix, counters, results, queue.dead_letters.low, names), snapshot


def level_end(prefix: bytes, level: int) -> bytes:
    """The first key after a level of ready items."""
    return prefix + level_part(level) + b"\xff"
