"""Expire: items of a lease that ran out, or whose holder hung up, are ready again.

A worker that dies takes a whole lease with it, and one item of it may be why. So a lease of several
items that expires charges nobody, but from then on each of them may be leased only in groups of
half that size: the culprit is soon alone, while the others are done in ever smaller company. An
item whose lease expires when it is alone in it is charged an attempt. Leases that are bound to one
connection end together with it, and count as one.
"""

from collections.abc import Iterator, Sequence

from queueber.db.families import Family
from queueber.db.records.keys import (
    NEVER_MS,
    PREFIX_BYTES,
    TIME_BYTES,
    due_part,
    due_upper_bound,
    split_due_part,
    time_part,
)
from queueber.db.records.leases import HELD_BYTES, decode_lease, split_held
from queueber.db.records.marks import mark_group_max, with_group_max
from queueber.engine.kernel.due_scan import look_ahead
from queueber.engine.kernel.state import Engine, QueueState
from queueber.engine.kernel.transaction import Change
from queueber.engine.queue.attempts import Failure, charge
from queueber.engine.queue.holders import holder_keys
from queueber.engine.queue.lifecycle import DeathReason
from queueber.engine.queue.ready_window import Entry
from queueber.errors import invariant

Lease = tuple[bytes, bytes]
"""The due part of its expiry entry, and what it holds."""

_ERROR = "the lease ran out"


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
    chosen: list[Lease] = []
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
        _end_leases(engine, queue, chosen, lease_due_ms=low_ms, now_ms=now_ms)
    else:
        # Known in memory only: it is written with the next change, and found again after a restart.
        counters.lease_due_ms = low_ms
    return items, look_again_ms


def expire_some(
    engine: Engine,
    queue: QueueState,
    lease_ids: Sequence[bytes],
    now_ms: int,
    *,
    company: int,
    items_max: int,
) -> tuple[int, list[bytes]]:
    """Expire the first of the leases of a holder who held `company` items in all, until
    `items_max` items have moved. Returns how many moved, and which leases are left."""
    chosen: list[Lease] = []
    looked_at = items = 0
    # Leases that ended before cost a look each, so the number of looks has its bound too.
    for lease in _read_leases(engine, queue, lease_ids[:items_max]):
        looked_at += 1
        if lease[1]:
            chosen.append(lease)
            items += len(lease[1]) // HELD_BYTES
            if items >= items_max:
                break
    if chosen:
        _end_leases(
            engine,
            queue,
            chosen,
            lease_due_ms=queue.counters.lease_due_ms,
            now_ms=now_ms,
            company=company,
        )
    return items, list(lease_ids[looked_at:])


def _read_leases(engine: Engine, queue: QueueState, lease_ids: Sequence[bytes]) -> Iterator[Lease]:
    """Each lease; one that has ended holds nothing."""
    keys = [queue.prefix + lease_id for lease_id in lease_ids]
    entries = engine.store.get_many(Family.LEASES, keys) if keys else []
    for lease_id, entry in zip(lease_ids, entries, strict=True):
        expires_at_ms, held = (0, b"") if entry is None else decode_lease(entry)
        yield due_part(expires_at_ms, lease_id), held


def _end_leases(
    engine: Engine,
    queue: QueueState,
    leases: Sequence[Lease],
    *,
    lease_due_ms: int,
    now_ms: int,
    company: int = 0,
) -> None:
    """End leases. `company` is how many items their holder had; 0: each had a holder of its own."""
    prefix, now = queue.prefix, time_part(now_ms)
    change = Change(engine, queue)
    batch, counters = change.batch, change.counters
    ready: list[Entry] = []
    failures: list[Failure] = []
    items = 0
    for due, held_bytes in leases:
        held = split_held(held_bytes)
        items += len(held)
        holders = holder_keys(prefix, due[TIME_BYTES:], [item_id for item_id, _ in held])
        batch.delete_many(Family.HOLDERS, holders)
        together = company or len(held)
        if together == 1:
            ((item_id, mark),) = held
            failures.append(Failure(item_id, mark, _ERROR, 0, DeathReason.EXPIRED))
        else:
            counters.suspects += sum(not mark_group_max(mark) for _, mark in held)
            ready += [(now + i, with_group_max(mark, together // 2)) for i, mark in held]
    batch.delete_many(Family.LEASE_EXPIRY, [prefix + due for due, _ in leases])
    batch.delete_many(Family.LEASES, [prefix + due[TIME_BYTES:] for due, _ in leases])
    if ready:
        change.make_ready(sorted(ready))
    if failures:
        charge(engine, queue, change, failures, now_ms)
    counters.leased -= items
    counters.leases -= len(leases)
    counters.expired_total += items
    counters.lease_due_ms = lease_due_ms
    change.commit()
