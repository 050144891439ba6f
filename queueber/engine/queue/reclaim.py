"""Reclaim: the room that a deleted queue took is given back to the disk, slice by slice.

A range deletion takes effect at once, but the files shrink only when they are compacted, which may
be never if nothing else is written there. A slice is one family and a few files; slices may run in
a thread of their own while calls are served. What is left to do survives a restart.
"""

from collections.abc import Callable, Iterator
from functools import partial

from queueber.db.families import QUEUE_FAMILIES, Family
from queueber.db.records.keys import prefix_end
from queueber.engine.kernel.state import RECLAIM_KEY, Engine


def reclaim_slices(engine: Engine, prefix: bytes) -> Iterator[Callable[[], None]]:
    """What is to be done for a deleted queue, in slices that may run in any thread."""
    bounds = engine.store.slices(prefix, prefix_end(prefix))
    for family in QUEUE_FAMILIES:
        for start, stop in bounds:
            yield partial(engine.store.reclaim, family, start, stop)


def reclaimed(engine: Engine, prefix: bytes) -> None:
    """All slices are done."""
    batch = engine.store.batch()
    batch.delete(Family.DEFAULT, RECLAIM_KEY + prefix)
    engine.store.write(batch)
    engine.reclaims.remove(prefix)
