"""Extend: give a live lease a later expiry, or an earlier one.

Only the lease and its expiry entry move, so the writes do not depend on how many items it holds.
"""

from collections.abc import Sequence

from queueber.db.families import Family
from queueber.db.records.keys import due_part
from queueber.db.records.leases import decode_lease, encode_lease
from queueber.engine.kernel.state import Engine, QueueState
from queueber.engine.kernel.transaction import Change


def extend(
    engine: Engine,
    queue: QueueState,
    leases: Sequence[bytes],
    leases_ms: Sequence[int],
    now_ms: int,
) -> list[bool]:
    """For each lease, whether it was alive and now expires `lease_ms` after `now_ms`."""
    # A lease named twice in one call gets what it was given last.
    wanted_ms = dict(zip(leases, leases_ms, strict=True))
    extended: set[bytes] = set()
    first_due_ms = now_ms + min(leases_ms)
    prefix = queue.prefix

    change = Change(engine, queue)
    batch = change.batch
    for lease_id, lease_ms in wanted_ms.items():
        entry = engine.store.get(Family.LEASES, prefix + lease_id)
        if entry is None:
            continue
        expires_at_ms, held = decode_lease(entry)
        if expires_at_ms <= now_ms:
            continue
        later_ms = now_ms + lease_ms
        # I4: the old expiry entry leaves in the same batch. When the time is the same, the put
        # wins.
        batch.delete(Family.LEASE_EXPIRY, prefix + due_part(expires_at_ms, lease_id))
        batch.put(Family.LEASE_EXPIRY, prefix + due_part(later_ms, lease_id), b"")
        batch.put(Family.LEASES, prefix + lease_id, encode_lease(later_ms, held))
        extended.add(lease_id)
    if extended:
        change.counters.extended_total += len(extended)
        change.counters.lease_due_ms = min(change.counters.lease_due_ms, first_due_ms)
        change.look_at(first_due_ms)
        change.commit()
    return [lease_id in extended for lease_id in leases]
