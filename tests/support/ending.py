"""The end of a holder, in one call: as the service does it, slice by slice."""

from collections.abc import Sequence

from queueber.engine.open import Engine
from queueber.engine.queue.queue_state import QueueState
from queueber.limits import SWEEP_SLICE_ITEMS
from tests.support.operations import expire_leases, held_by


def expire_together(
    engine: Engine, queue: QueueState, lease_ids: Sequence[bytes], now_ms: int
) -> int:
    """Expire the leases of one holder now; returns how many items moved."""
    together = held_by(engine, queue, list(lease_ids)).items
    moved, left = 0, list(lease_ids)
    while left:
        of_slice, left = expire_leases(
            engine, queue, left, now_ms, together=together, items_max=SWEEP_SLICE_ITEMS
        )
        moved += of_slice
    return moved
