"""Reclaim: free the disk space of a deleted queue, slice by slice.

A range deletion takes effect at once, but files shrink only when RocksDB compacts them, which may
never happen if nothing else is written there. A slice is one family and a few files; slices may run
in a background thread while the server answers calls. After a restart the rest is done.
"""

from collections.abc import Callable, Iterator
from functools import partial

from queueber.db.families import QUEUE_FAMILIES
from queueber.db.records.keys import prefix_end
from queueber.db.store.contract import Store


def reclaim_slices(store: Store, prefix: bytes) -> Iterator[Callable[[], None]]:
    """The work for a deleted queue, as slices that may run in any thread."""
    bounds = store.slices(prefix, prefix_end(prefix))
    for family in QUEUE_FAMILIES:
        for start, stop in bounds:
            yield partial(store.reclaim, family, start, stop)
