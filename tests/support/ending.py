"""The end of a holder, in one call: as the service does it, slice by slice."""

from collections.abc import Sequence

from queueber.engine.kernel.state import Engine, QueueState
from queueber.engine.queue.expire import expire_some
from queueber.engine.queue.selection import company_of
from queueber.limits import SWEEP_SLICE_ITEMS


def expire_together(
    engine: Engine, queue: QueueState, lease_ids: Sequence[bytes], now_ms: int
) -> int:
    """Expire the leases of one holder now; returns how many items moved."""
    company = company_of(engine, queue, list(lease_ids)).items
    moved, left = 0, list(lease_ids)
    while left:
        of_slice, left = expire_some(
            engine, queue, left, now_ms, company=company, items_max=SWEEP_SLICE_ITEMS
        )
        moved += of_slice
    return moved
