"""Expire: items of a lease that ran out, or whose holder hung up, are ready again."""

from queueber.db.families import Family
from queueber.db.keys import (
    NEVER_MS,
    PREFIX_BYTES,
    TIME_BYTES,
    due_part,
    due_upper_bound,
    split_due_part,
    time_part,
)
from queueber.db.records import HELD_BYTES, decode_lease, encode_size, split_held
from queueber.engine.lookahead import look_ahead
from queueber.engine.state import Engine, QueueState
from queueber.errors import invariant


def expire(engine: Engine, queue: QueueState, now_ms: int, items_max: int) -> tuple[int, int]:
    """Expire due leases until `items_max` items have moved.

    Returns how many items moved, and when to look again.
    """
    counters = queue.counters
    if counters.lease_due_ms > now_ms:
        return 0, counters.lease_due_ms
    prefix = queue.prefix
    due = engine.store.scan(
        Family.LEASE_EXPIRY,
        prefix + time_part(counters.lease_due_ms),
        due_upper_bound(prefix, now_ms),
        items_max,
    )
    keys = [key for key, _ in due]
    entries = engine.store.get_many(
        Family.LEASES, [prefix + key[PREFIX_BYTES + TIME_BYTES :] for key in keys]
    )
    chosen: list[tuple[bytes, bytes]] = []
    items = 0
    for key, entry in zip(keys, entries, strict=True):
        if items >= items_max:
            break
        invariant(entry is not None, "I4", queue=queue.name, expiry_key=key.hex())
        held = decode_lease(entry or b"")[1]
        chosen.append((key[PREFIX_BYTES:], held))
        items += len(held) // HELD_BYTES

    if len(chosen) < len(due) or len(due) == items_max:
        low_ms = look_again_ms = split_due_part(chosen[-1][0])[0]
    elif len(chosen) == counters.leases:
        low_ms = look_again_ms = NEVER_MS
    else:
        low_ms, look_again_ms = look_ahead(engine.store, Family.LEASE_EXPIRY, prefix, now_ms)
    if chosen:
        _give_back(engine, queue, chosen, lease_due_ms=low_ms, now_ms=now_ms)
    else:
        # Known in memory only: it is written with the next change, and found again after a restart.
        counters.lease_due_ms = low_ms
    return items, look_again_ms


def expire_lease(engine: Engine, queue: QueueState, lease_id: bytes, now_ms: int) -> int:
    """Expire one lease now, whatever its expiry; returns how many items moved."""
    entry = engine.store.get(Family.LEASES, queue.prefix + lease_id)
    if entry is None:
        return 0
    expires_at_ms, held = decode_lease(entry)
    chosen = [(due_part(expires_at_ms, lease_id), held)]
    _give_back(engine, queue, chosen, lease_due_ms=queue.counters.lease_due_ms, now_ms=now_ms)
    return len(held) // HELD_BYTES


def _give_back(
    engine: Engine,
    queue: QueueState,
    leases: list[tuple[bytes, bytes]],
    *,
    lease_due_ms: int,
    now_ms: int,
) -> None:
    """End the leases, given as the due part of their expiry entry and what they hold."""
    prefix, now = queue.prefix, time_part(now_ms)
    ready = sorted((now + i, size) for _, held in leases for i, size in split_held(held))

    change = engine.change(queue)
    batch, counters = change.batch, change.counters
    batch.delete_many(Family.LEASE_EXPIRY, [prefix + due for due, _ in leases])
    batch.delete_many(Family.LEASES, [prefix + due[TIME_BYTES:] for due, _ in leases])
    batch.delete_many(Family.IN_PROGRESS, [prefix + due[TIME_BYTES:] for due, _ in ready])
    batch.put_many(Family.VISIBILITY_INDEX, [(prefix + d, encode_size(s)) for d, s in ready])
    counters.ready += len(ready)
    counters.in_progress -= len(ready)
    counters.leases -= len(leases)
    counters.expired_total += len(ready)
    counters.lease_due_ms = lease_due_ms
    counters.ready_low = min(counters.ready_low, ready[0][0])
    change.commit()
    queue.window.insert(ready)
