"""Reclaim: the space that a deleted queue took is given back to the disk, slice by slice.

A range deletion takes effect at once, but the files shrink only when they are compacted, which may
be never if nothing else is written there. A slice is one family and a few files; slices may run in
a thread of their own while calls are served. What is left to do survives a restart.
"""

from collections.abc import Callable, Iterator
from functools import partial

from queueber.db.families import QUEUE_FAMILIES
from queueber.db.records.keys import prefix_end
from queueber.db.store.contract import Store


def reclaim_slices(store: Store, prefix: bytes) -> Iterator[Callable[[], None]]:
    """What is to be done for a deleted queue, in slices that may run in any thread."""
    bounds = store.slices(prefix, prefix_end(prefix))
    for family in QUEUE_FAMILIES:
        for start, stop in bounds:
            yield partial(store.reclaim, family, start, stop)
