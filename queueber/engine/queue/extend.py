"""Extend: give a live lease a later expiry, or an earlier one.

Only the lease and its expiry entry move, so the writes do not depend on how many items it holds.
"""

from collections.abc import Sequence

from queueber.engine.queue.queue_state import QueueTx


def extend(tx: QueueTx, leases: Sequence[bytes], leases_ms: Sequence[int]) -> list[bool]:
    """For each lease, whether it was alive and now expires its `leases_ms` from now."""
    # If a call names a lease twice, the last time counts.
    wanted_ms = dict(zip(leases, leases_ms, strict=True))
    extended = {
        lease_id
        for lease_id, lease_ms in wanted_ms.items()
        if tx.queue.leases.extend(tx, lease_id, tx.now_ms + lease_ms)
    }
    tx.counters.extended_total += len(extended)
    return [lease_id in extended for lease_id in leases]
