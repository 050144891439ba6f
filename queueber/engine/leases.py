"""Take items out of the leases that hold them: how every outcome of work begins."""

from collections.abc import Sequence

from queueber.db.families import Family
from queueber.db.keys import due_part
from queueber.db.records import HELD_BYTES, decode_lease, encode_lease, split_held
from queueber.engine.change import Change
from queueber.engine.state import Engine, QueueState
from queueber.limits import ID_BYTES

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
    if len(ids) == 1 or leases.count(leases[0]) == len(leases):
        return _take_of_lease(engine, queue, change, leases[0], ids, now_ms)
    marks: Marks = [None] * len(ids)
    places: dict[bytes, list[int]] = {}
    for place, lease_id in enumerate(leases):
        places.setdefault(lease_id, []).append(place)
    for lease_id, of_lease in places.items():
        asked = [ids[place] for place in of_lease]
        taken = _take_of_lease(engine, queue, change, lease_id, asked, now_ms)
        for place, mark in zip(of_lease, taken, strict=True):
            marks[place] = mark
    return marks


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
    engine: Engine,
    queue: QueueState,
    change: Change,
    lease_id: bytes,
    ids: Sequence[bytes],
    now_ms: int,
) -> Marks:
    prefix = queue.prefix
    lease_key = prefix + lease_id
    entry = engine.store.get(Family.LEASES, lease_key)
    if entry is None:
        return [None] * len(ids)
    expires_at_ms, held = decode_lease(entry)
    if expires_at_ms <= now_ms:
        return [None] * len(ids)

    remaining = dict(split_held(held))
    marks = [remaining.pop(item_id, None) for item_id in ids]
    taken = [prefix + i for i, mark in zip(ids, marks, strict=True) if mark is not None]
    if not taken:
        return marks

    batch, counters = change.batch, change.counters
    batch.delete_many(Family.IN_PROGRESS, taken)
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
    counters.in_progress -= len(taken)
    return marks
