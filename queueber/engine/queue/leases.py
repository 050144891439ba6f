"""Take items out of the leases that hold them: how every outcome of work begins."""

from collections.abc import Sequence
from itertools import chain, groupby

from queueber.db.families import Family
from queueber.db.records.keys import due_part
from queueber.db.records.leases import HELD_BYTES, decode_lease, encode_lease, split_held
from queueber.engine.kernel.state import Engine, QueueState
from queueber.engine.kernel.transaction import Change
from queueber.engine.queue.holders import holder_keys

Marks = list[bytes | None]

_BEFORE_ANY_EXPIRY_MS = -1


def take_held(
    engine: Engine,
    queue: QueueState,
    change: Change,
    ids: Sequence[bytes],
    leases: Sequence[bytes],
    now_ms: int,
) -> Marks:
    """For each id its mark, if its lease holds it; it is then out of the lease and nowhere yet.

    `leases` has one for each id. An expired lease holds nothing, even if the sweeper has not
    reached it: accepting it would make the outcome depend on the sweeper's timing.
    """
    prefix = queue.prefix
    places: dict[bytes, list[int]] = {}
    # Most often the items of a lease stand together, and all of them are named.
    for lease_id, run in groupby(range(len(leases)), leases.__getitem__):
        places.setdefault(lease_id, []).extend(run)
    entries = engine.store.get_many(Family.LEASES, [prefix + each for each in places])
    marks: Marks = []
    for (lease_id, of_lease), entry in zip(places.items(), entries, strict=True):
        asked = [ids[place] for place in of_lease]
        marks += _take_of_lease(queue, change, lease_id, entry, asked, now_ms)
    order = list(chain.from_iterable(places.values()))
    if order != list(range(len(ids))):
        marks = [mark for _, mark in sorted(zip(order, marks, strict=True))]
    return marks


def take_whole(
    engine: Engine,
    queue: QueueState,
    change: Change,
    leases: Sequence[bytes],
    counts: Sequence[int],
    now_ms: int,
) -> list[list[tuple[bytes, bytes]]]:
    """For each lease all that it holds, if that is as many items as its count says: else none.

    A lease never gets items that it did not have at first, so the number says which they are.
    """
    entries = engine.store.get_many(Family.LEASES, [queue.prefix + each for each in leases])
    taken: list[list[tuple[bytes, bytes]]] = []
    ended: set[bytes] = set()
    for lease_id, count, entry in zip(leases, counts, entries, strict=True):
        expires_at_ms, held = (0, b"") if entry is None else decode_lease(entry)
        is_whole = len(held) == count * HELD_BYTES and expires_at_ms > now_ms
        if not is_whole or lease_id in ended:
            taken.append([])
            continue
        ended.add(lease_id)
        items = split_held(held)
        _end_lease(queue, change, lease_id, expires_at_ms, [item_id for item_id, _ in items])
        taken.append(items)
    return taken


def take_from_any_lease(
    engine: Engine, queue: QueueState, change: Change, held: Sequence[tuple[bytes, bytes]]
) -> list[tuple[bytes, bytes]]:
    """Items, given as id and lease, leave the leases that hold them, expired or not.

    Returns their ids and marks.
    """
    if not held:
        return []
    ids, leases = zip(*held, strict=True)
    marks = take_held(engine, queue, change, ids, leases, now_ms=_BEFORE_ANY_EXPIRY_MS)
    return [(i, mark) for i, mark in zip(ids, marks, strict=True) if mark is not None]


def _take_of_lease(
    queue: QueueState,
    change: Change,
    lease_id: bytes,
    entry: bytes | None,
    ids: list[bytes],
    now_ms: int,
) -> Marks:
    if entry is None:
        return [None] * len(ids)
    expires_at_ms, held = decode_lease(entry)
    if expires_at_ms <= now_ms:
        return [None] * len(ids)

    prefix, remaining = queue.prefix, dict(split_held(held))
    if list(remaining) == ids:
        _end_lease(queue, change, lease_id, expires_at_ms, ids)
        return list(remaining.values())
    marks: Marks = [remaining.pop(item_id, None) for item_id in ids]
    taken = [i for i, mark in zip(ids, marks, strict=True) if mark is not None]
    if not remaining:
        _end_lease(queue, change, lease_id, expires_at_ms, taken)
    elif taken:
        kept = b"".join([item_id + mark for item_id, mark in remaining.items()])
        change.batch.put(Family.LEASES, prefix + lease_id, encode_lease(expires_at_ms, kept))
        still = set(holder_keys(prefix, lease_id, remaining))
        left = [key for key in holder_keys(prefix, lease_id, taken) if key not in still]
        change.batch.delete_many(Family.HOLDERS, left)
        change.counters.leased -= len(taken)
    return marks


def _end_lease(
    queue: QueueState, change: Change, lease_id: bytes, expires_at_ms: int, ids: Sequence[bytes]
) -> None:
    """A lease goes with all that it still held."""
    prefix, batch = queue.prefix, change.batch
    batch.delete(Family.LEASES, prefix + lease_id)
    batch.delete(Family.LEASE_EXPIRY, prefix + due_part(expires_at_ms, lease_id))
    batch.delete_many(Family.HOLDERS, holder_keys(prefix, lease_id, ids))
    change.counters.leases -= 1
    change.counters.leased -= len(ids)
