"""Expire: end leases that ran out, or whose connection closed. `isolation.py` says what becomes of
the items that they held."""

from collections.abc import Sequence
from typing import cast

from queueber.db.families import Family
from queueber.db.records.cutting import join_entries
from queueber.db.records.keys import (
    NEVER_MS,
    PREFIX_BYTES,
    TIME_BYTES,
    Due,
    due_part,
    due_upper_bound,
    split_due_part,
    time_part,
)
from queueber.db.records.runs import Entry, Run, count_items, entry_at
from queueber.engine.caps.key_changes import free_slots
from queueber.engine.kernel.due_scan import Done, look_ahead
from queueber.engine.queue.changes import Change, Moved
from queueber.engine.queue.fail import Failure, charge
from queueber.engine.queue.isolation import quarantine
from queueber.engine.queue.leases import HeldRuns
from queueber.engine.queue.lifecycle import DeathReason, State
from queueber.engine.queue.queue_state import QueueTx
from queueber.errors import invariant
from queueber.model import AttemptEnd

RAN_OUT = "the lease ran out"
DISCONNECTED = "its worker lost the connection"
_ENDS = {RAN_OUT: AttemptEnd.EXPIRED, DISCONNECTED: AttemptEnd.DISCONNECTED}


def expire(tx: QueueTx, items_max: int) -> Done:
    """Expire due leases until `items_max` items have moved."""
    prefix, counters, now_ms = tx.prefix, tx.counters, tx.now_ms
    start, stop = prefix + time_part(counters.lease_due_ms), due_upper_bound(prefix, now_ms)
    found = tx.store.scan(Family.LEASE_EXPIRY, start, stop, items_max)
    dues = cast("list[Due]", [key[PREFIX_BYTES:] for key, _ in found])
    chosen: list[HeldRuns] = []
    items = 0
    held_of = tx.queue.leases.read([each[TIME_BYTES:] for each in dues])
    for expiry, (_, held) in zip(dues, held_of, strict=True):
        if items >= items_max:
            break
        invariant(held, "I4", queue=tx.queue.name, expiry=expiry.hex())
        chosen.append((expiry, held))
        items += count_items(held)

    if len(chosen) < len(dues) or len(dues) == items_max:
        low_ms = look_again_ms = split_due_part(chosen[-1][0])[0]
    elif len(chosen) == counters.leases:
        low_ms = look_again_ms = NEVER_MS
    else:
        low_ms, look_again_ms = look_ahead(tx.store, Family.LEASE_EXPIRY, prefix, now_ms)
    counters.lease_due_ms = low_ms
    _end(tx, chosen, error=RAN_OUT)
    return Done(items, look_again_ms)


def expire_leases(
    tx: QueueTx, lease_ids: Sequence[bytes], *, together: int, items_max: int
) -> tuple[int, list[bytes]]:
    """Expire the first of the leases of a closed connection, until `items_max` items have moved.

    The connection held `together` items in all. Returns how many moved, and which leases are left.
    """
    chosen: list[HeldRuns] = []
    looked_at = items = 0
    # A lease that has ended already costs a read as well, so the number of reads has a limit, too.
    asked = lease_ids[:items_max]
    for lease_id, (expires_at_ms, held) in zip(asked, tx.queue.leases.read(asked), strict=True):
        looked_at += 1
        if held:
            chosen.append((due_part(expires_at_ms, lease_id), held))
            items += count_items(held)
            if items >= items_max:
                break
    _end(tx, chosen, error=DISCONNECTED, together=together)
    return items, list(lease_ids[looked_at:])


def _moves(held: Sequence[Run], marked: Sequence[Run], error: str) -> list[Moved]:
    return [
        Moved(Change.EXPIRED, run, State.LEASED, State.READY, after.mark, error=error)
        for run, after in zip(held, marked, strict=True)
    ]


def _end(tx: QueueTx, leases: Sequence[HeldRuns], *, error: str, together: int = 0) -> None:
    """End leases. One holder lost `together` items in all; 0: each lease had its own holder."""
    ready: list[Entry] = []
    failures: list[Failure] = []
    for _, runs in leases:
        held = free_slots(tx, runs)
        count = count_items(held)
        lost = together or count
        if lost == 1:
            failures += [
                Failure(item, error, None, DeathReason.EXPIRED, _ENDS[error]) for item in held
            ]
        else:
            marked = quarantine(tx, held, lost)
            ready += [entry_at(tx.now_ms, run) for run in marked]
            if tx.queue.changes is not None:
                tx.queue.changes.moved(tx, _moves(held, marked, error))
        tx.counters.expired_total += count
    tx.queue.leases.end(tx, leases)
    if ready:
        tx.queue.ready.put(tx, join_entries(ready))
    if failures:
        charge(tx, failures)
