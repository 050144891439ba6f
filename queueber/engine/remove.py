"""Remove: the work is done, the item goes."""

from collections.abc import Sequence

from queueber.db.families import Family
from queueber.db.keys import due_part
from queueber.db.records import HELD_BYTES, decode_lease, encode_lease, split_held
from queueber.engine.state import Change, Engine, QueueState
from queueber.limits import ID_BYTES


def remove(
    engine: Engine,
    queue: QueueState,
    ids: Sequence[bytes],
    leases: Sequence[bytes],
    now_ms: int,
) -> list[bool]:
    """For each id, whether its lease held it and it is now gone.

    `leases` has one for each id. An expired lease removes nothing, even if the sweeper has not
    reached it: accepting it would make the outcome depend on the sweeper's timing.
    """
    change = engine.change(queue)
    if len(ids) == 1:
        outcome = [_remove_of_lease(engine, queue, change, leases[0], ids, now_ms)[0]]
    else:
        outcome = [False] * len(ids)
        places: dict[bytes, list[int]] = {}
        for place, lease_id in enumerate(leases):
            places.setdefault(lease_id, []).append(place)
        for lease_id, of_lease in places.items():
            asked = [ids[place] for place in of_lease]
            removed = _remove_of_lease(engine, queue, change, lease_id, asked, now_ms)
            for place, done in zip(of_lease, removed, strict=True):
                outcome[place] = done
    if any(outcome):
        change.commit()
    return outcome


def _remove_of_lease(
    engine: Engine,
    queue: QueueState,
    change: Change,
    lease_id: bytes,
    ids: Sequence[bytes],
    now_ms: int,
) -> list[bool]:
    prefix = queue.prefix
    lease_key = prefix + lease_id
    entry = engine.store.get(Family.LEASES, lease_key)
    if entry is None:
        return [False] * len(ids)
    expires_at_ms, held = decode_lease(entry)
    if expires_at_ms <= now_ms:
        return [False] * len(ids)

    remaining = dict(split_held(held))
    sizes = [remaining.pop(item_id, None) for item_id in ids]
    gone = [prefix + i for i, size in zip(ids, sizes, strict=True) if size is not None]
    if not gone:
        return [False] * len(ids)

    batch, counters = change.batch, change.counters
    batch.delete_many(Family.ITEMS, gone)
    batch.delete_many(Family.IN_PROGRESS, gone)
    if remaining:
        kept = b"".join(
            held[at : at + HELD_BYTES]
            for at in range(0, len(held), HELD_BYTES)
            if held[at : at + ID_BYTES] in remaining
        )
        batch.put(Family.LEASES, lease_key, encode_lease(expires_at_ms, kept))
    else:
        batch.delete(Family.LEASES, lease_key)
        batch.delete(Family.LEASE_EXPIRY, prefix + due_part(expires_at_ms, lease_id))
        counters.leases -= 1
    counters.in_progress -= len(gone)
    counters.removed_total += len(gone)
    counters.contents_bytes -= sum(size for size in sizes if size is not None)
    return [size is not None for size in sizes]
