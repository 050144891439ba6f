"""A view: one queue to be looked at, as it is now or as it was when a snapshot was taken.

Whoever only looks takes a view, so that there is one way of looking and not two.
"""

from dataclasses import dataclass

from queueber.db.families import Family
from queueber.db.records.counters import Counters
from queueber.db.records.keys import level_part, prefix_end
from queueber.db.records.log import block_key
from queueber.db.store.contract import Range, Reads, Snapshot, Store
from queueber.engine.log.log import Log
from queueber.engine.queue.queue_state import QueueState
from queueber.engine.records.batches import BatchNames

_WHOLE_RANGES = (Family.DELAYED, Family.LEASES, Family.DEAD)
_POINTS = (Family.ITEMS, Family.ATTEMPTS, Family.BATCHES, Family.BATCH_NAMES)


@dataclass(frozen=True, slots=True)
class View:
    reads: Reads
    prefix: bytes
    counters: Counters
    results: Log
    dead_low: bytes
    """No dead letter has a lower id."""
    batches: BatchNames


def live_view(store: Store, queue: QueueState) -> View:
    """The queue as it is. For one look: what changes afterwards may or may not be seen."""
    return View(
        store,
        queue.prefix,
        queue.counters,
        queue.results,
        queue.dead_letters.low,
        queue.batches.names,
    )


def take_view(store: Store, queue: QueueState) -> tuple[View, Snapshot]:
    """The queue as it is now, for as long as the snapshot is not closed.

    Its cost does not depend on how many items there are.
    """
    prefix, log = queue.prefix, queue.results
    # A transaction replaces counters and heads and leaves the old ones as they are.
    counters, results = queue.counters, Log(log.prefix, log.head, {})
    ranges: list[Range] = [(family, prefix_end(prefix)) for family in _WHOLE_RANGES]
    # A range a level: what was deleted at the front of the next one is not to be passed over.
    ranges += [(Family.VISIBILITY_INDEX, level_end(prefix, level)) for level in counters.levels]
    ranges.append((Family.LOG_BLOCKS, block_key(log.prefix, log.head.next_offset)))
    snapshot = store.snapshot(ranges, _POINTS)
    names = BatchNames(snapshot, prefix)
    return View(snapshot, prefix, counters, results, queue.dead_letters.low, names), snapshot


def level_end(prefix: bytes, level: int) -> bytes:
    """The first key after a level of ready items."""
    return prefix + level_part(level) + b"\xff"
