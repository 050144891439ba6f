"""Holders: which lease holds an item, for those who know its id alone.

A lease names the items that it holds; `holders` is the way back. It has an entry for each lease and
block of ids, where a block is all ids that differ in the last byte only. Items that were added
together have neighbouring ids and are mostly leased together, so that a lease of many has an entry
or two; and a block has 256 ids, so that many leases at most are to be looked at to find an item's.
"""

from collections.abc import Collection, Sequence

from queueber.db.families import Family
from queueber.db.records.keys import ID_BLOCK_BYTES, id_block
from queueber.db.records.leases import decode_lease, is_held
from queueber.engine.kernel.state import Engine, QueueState
from queueber.limits import ID_BYTES

_BLOCK_IDS = 256
_AFTER_ANY_LEASE = b"\xff" * (ID_BYTES + 1)


def holder_keys(prefix: bytes, lease_id: bytes, ids: Collection[bytes]) -> list[bytes]:
    """The keys of a lease that holds the items."""
    if not ids:
        return []
    first, last = id_block(min(ids)), id_block(max(ids))
    # Most often all are of one block, and what lies between two ids of a block is of it, too.
    blocks = {first} if first == last else {item_id[:ID_BLOCK_BYTES] for item_id in ids}
    return [prefix + block + lease_id for block in sorted(blocks)]


def find_holders(
    engine: Engine, queue: QueueState, ids: Sequence[bytes]
) -> list[tuple[bytes, bytes]]:
    """Those of the items that are in progress, each with its lease."""
    wanted: dict[bytes, list[bytes]] = {}
    for item_id in ids:
        wanted.setdefault(id_block(item_id), []).append(item_id)
    found: list[tuple[bytes, bytes]] = []
    for block, of_block in wanted.items():
        start = queue.prefix + block
        entries = engine.store.scan(Family.HOLDERS, start, start + _AFTER_ANY_LEASE, _BLOCK_IDS)
        leases = [key[len(start) :] for key, _ in entries]
        if leases:
            values = engine.store.get_many(Family.LEASES, [queue.prefix + each for each in leases])
            for lease_id, value in zip(leases, values, strict=True):
                held = decode_lease(value or b"")[1]
                found += [(item_id, lease_id) for item_id in of_block if is_held(held, item_id)]
    return found
