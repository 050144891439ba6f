"""A view: one queue to be looked at, as it is now or as it was when a snapshot was taken.

Whoever only looks takes a view, so that there is one way of looking and not two.
"""

from dataclasses import dataclass

from queueber.db.families import Family
from queueber.db.records.batches import batch_number_part, decode_batch
from queueber.db.records.counters import Counters
from queueber.db.records.keys import level_part, prefix_end, text_digest
from queueber.db.records.log import block_key
from queueber.db.store.contract import Range, Reads, Snapshot
from queueber.engine.kernel.state import Engine, QueueState
from queueber.engine.log.log import Log

_NAMES_KEPT = 1000

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
    names: dict[int, str]
    """Of batches, by number; filled as they are asked for."""

    def batch_name(self, number: int) -> str:
        """The name of a batch; "" for none, and for one that is forgotten."""
        if number == 0:
            return ""
        name = self.names.get(number)
        if name is None:
            stored = self.reads.get(Family.BATCHES, self.prefix + batch_number_part(number))
            if stored is None:
                return ""
            name = decode_batch(stored).name
            if len(self.names) >= _NAMES_KEPT:
                self.names.clear()
            self.names[number] = name
        return name

    def batch_number(self, name: str) -> int | None:
        stored = self.reads.get(Family.BATCH_NAMES, self.prefix + text_digest(name))
        return None if stored is None else int.from_bytes(stored)


def live_view(engine: Engine, queue: QueueState) -> View:
    """The queue as it is. For one look: what changes afterwards may or may not be seen."""
    return View(
        engine.store,
        queue.prefix,
        queue.counters,
        queue.results,
        queue.dead_low,
        queue.batch_names,
    )


def take_view(engine: Engine, queue: QueueState) -> tuple[View, Snapshot]:
    """The queue as it is now, for as long as the snapshot is not closed.

    Its cost does not depend on how many items there are.
    """
    prefix, log = queue.prefix, queue.results
    # A change replaces counters and heads and leaves the old ones as they are.
    counters, results = queue.counters, Log(log.prefix, log.head, {})
    ranges: list[Range] = [(family, prefix_end(prefix)) for family in _WHOLE_RANGES]
    # A range a level: what was deleted at the front of the next one is not to be passed over.
    ranges += [(Family.VISIBILITY_INDEX, level_end(prefix, level)) for level in counters.levels]
    ranges.append((Family.LOG_BLOCKS, block_key(log.prefix, log.head.next_offset)))
    snapshot = engine.store.snapshot(ranges, _POINTS)
    return View(snapshot, prefix, counters, results, queue.dead_low, {}), snapshot


def level_end(prefix: bytes, level: int) -> bytes:
    """The first key after a level of ready items."""
    return prefix + level_part(level) + b"\xff"
