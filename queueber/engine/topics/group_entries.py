"""The entries that a shared group has of a partition: the lowest, and those before an offset.

References sort by partition and offset, and their time is 0. So every ready or delayed run has a
place, and one seek in `places` or `holders` finds the first message of a partition.
"""

from collections.abc import Collection

from queueber.db.families import Family
from queueber.db.records.cutting import Sizes, part, pick
from queueber.db.records.dead_letters import decode_dead
from queueber.db.records.keys import PREFIX_BYTES, last_id_end
from queueber.db.records.runs import Entry, Run, at_time_of
from queueber.db.store.contract import Store
from queueber.engine.queue.places import find_entry, put_delayed, take_delayed
from queueber.engine.queue.queue_state import QueueState, QueueTx
from queueber.ids import reference, split_reference
from queueber.limits import BLOCK_ITEMS_MAX, ID_BYTES

_OFFSET_END = (1 << 64) - 1
_AFTER_ANY_LEASE = b"\xff" * (ID_BYTES + 1)


def range_of(prefix: bytes, partition: int, first: int = 0) -> tuple[bytes, bytes]:
    """The keys of a partition from an offset on, in families that are sorted by reference."""
    return prefix + reference(partition, first), prefix + reference(partition, _OFFSET_END)


# --- the lowest -----------------------------------------------------------------------------------


def lowest_waiting(store: Store, queue: QueueState, partition: int, first: int, end: int) -> int:
    """The offset of the first message from `first` on that is ready or delayed; else `end`."""
    start, stop = range_of(queue.prefix, partition, first)
    found = store.scan(Family.PLACES, start, stop, 1)
    if not found:
        return end
    key, time = found[0]
    _, (_, run) = entry_of(store, queue, key[PREFIX_BYTES:], int.from_bytes(time))
    return max(first, split_reference(run.first)[1])


def lowest_leased(store: Store, queue: QueueState, partition: int, first: int, end: int) -> int:
    """The offset of the first message from `first` on that is leased; else `end`."""
    start, stop = range_of(queue.prefix, partition, first)
    while found := store.scan(Family.HOLDERS, start, stop, 1):
        block = found[0][0][PREFIX_BYTES : PREFIX_BYTES + ID_BYTES]
        start, after = queue.prefix + block, queue.prefix + block + _AFTER_ANY_LEASE
        keys = [key for key, _ in store.scan(Family.HOLDERS, start, after, BLOCK_ITEMS_MAX)]
        held = queue.leases.read([key[len(start) :] for key in keys])
        lasts = [
            (split_reference(run.first)[1], split_reference(run.last)[1])
            for _, runs in held
            for run in runs
            if run.block == block
        ]
        offsets = [max(first, low) for low, last in lasts if last >= first]
        if offsets:
            return min(offsets)
        start = after  # only messages of the block before `first` are leased
    return end


def entry_of(store: Store, queue: QueueState, last: bytes, at_ms: int) -> tuple[int | None, Entry]:
    """The level, None if it is delayed, and the entry of a run that `places` has."""
    if queue.counters.delayed:
        entry = find_entry(store, Family.DELAYED, queue.prefix, at_ms, last)
        if entry is not None:
            return None, entry
    found = queue.ready.find(queue.counters, at_ms, last)
    assert found is not None, f"places has {last.hex()}, which is neither ready nor delayed"
    return found


def has_dead_from(store: Store, queue: QueueState, partition: int, offset: int) -> bool:
    """Whether messages from an offset on are dead letters, because the group was reset."""
    start, stop = range_of(queue.prefix, partition, offset)
    return bool(queue.counters.dead and store.scan(Family.DEAD, start, stop, 1))


def without_dead(store: Store, queue: QueueState, run: Run, sizes: Sizes) -> list[Run]:
    """The messages of a run that are no dead letters."""
    start, stop = queue.prefix + run.first, queue.prefix + last_id_end(run.last)
    found = store.scan(Family.DEAD, start, stop, 2 * BLOCK_ITEMS_MAX)
    dead = {
        item_id for key, value in found for item_id in decode_dead(key[PREFIX_BYTES:], value)[2].ids
    }
    positions = [at for at, item_id in enumerate(run.ids) if item_id in dead]
    return pick(run, positions, sizes)[1]


# --- those before an offset -----------------------------------------------------------------------


def take_waiting(tx: QueueTx, partition: int, end: int, limit: int, *, first: int = 0) -> list[Run]:
    """Take ready and delayed messages before an offset out of their indexes, at least `limit` of
    them if there are so many. There are none before `first`."""
    queue, blocks = tx.queue, tx.queue.blocks.reader()
    start, stop = range_of(tx.prefix, partition, first)
    taken: list[Run] = []
    count = 0
    for key, time in tx.store.walk(Family.PLACES, start, stop):
        if count >= limit:
            break
        level, entry = entry_of(tx.store, queue, key[PREFIX_BYTES:], int.from_bytes(time))
        due, run = entry
        gone = min(run.count, end - split_reference(run.first)[1])
        if gone <= 0:
            break
        sizes = blocks.sizes(run)
        left = [part(run, gone, run.count, sizes)] if gone < run.count else []
        if level is None:
            take_delayed(tx, [entry])
            if left:
                put_delayed(tx, [at_time_of(due, left[0])])
        else:
            queue.ready.take_some(tx, level, entry, left)
        taken.append(part(run, 0, gone, sizes))
        count += gone
    return taken


def take_dead(tx: QueueTx, partition: int, end: int, limit: int) -> list[Run]:
    """Take dead letters before an offset out of the family, at least `limit` of them if there are
    so many."""
    start, stop = range_of(tx.prefix, partition)
    ids: list[bytes] = []
    for key, value in tx.store.walk(Family.DEAD, start, stop):
        _, _, run = decode_dead(key[PREFIX_BYTES:], value)
        if split_reference(run.first)[1] >= end or len(ids) >= limit:
            break
        ids += [each for each in run.ids if split_reference(each)[1] < end]
    return tx.queue.dead_letters.take(tx, ids) if ids else []


def take_leased(tx: QueueTx, partitions: Collection[int]) -> list[Run]:
    """Take all messages of some partitions out of their leases."""
    found = [
        key
        for each in partitions
        for key, _ in tx.store.walk(Family.HOLDERS, *range_of(tx.prefix, each))
    ]
    leases = list(dict.fromkeys([key[PREFIX_BYTES + ID_BYTES :] for key in found]))
    held = [
        (item_id, lease_id)
        for lease_id, (_, runs) in zip(leases, tx.queue.leases.read(leases), strict=True)
        for run in runs
        if split_reference(run.last)[0] in partitions
        for item_id in run.ids
    ]
    return tx.queue.leases.take_from_any(tx, held)


def take_leased_before(
    tx: QueueTx, partition: int, end: int, limit: int, *, first: int = 0
) -> list[Run] | None:
    """Take all messages of a partition before an offset out of their leases; None, and nothing is
    taken, if they are more than `limit`. None before `first` is leased."""
    leases: dict[bytes, None] = {}
    last_block = b""
    for key, _ in tx.store.walk(Family.HOLDERS, *range_of(tx.prefix, partition, first)):
        block = key[PREFIX_BYTES : PREFIX_BYTES + ID_BYTES]
        if len(leases) > limit or (last_block and block != last_block):
            break
        leases[key[PREFIX_BYTES + ID_BYTES :]] = None
        if split_reference(block)[1] >= end - 1:
            last_block = block
    stop = reference(partition, end)
    held: list[tuple[bytes, bytes]] = []
    for lease_id, (_, runs) in zip(leases, tx.queue.leases.read(list(leases)), strict=True):
        for run in runs:
            if split_reference(run.first)[0] == partition and run.first < stop:
                held += [(item_id, lease_id) for item_id in run.ids if item_id < stop]
        if len(held) > limit:
            return None
    return tx.queue.leases.take_from_any(tx, held)
