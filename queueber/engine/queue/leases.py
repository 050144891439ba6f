"""Leases: who holds which items until when.

A lease lists the runs that it holds; the family `holders` leads back from an item to its lease. It
has an entry for each lease and each block of which the lease holds items, so a block leads to few
leases: at most as many as it has items.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from queueber.db.families import Family
from queueber.db.records.cutting import join, pick
from queueber.db.records.keys import (
    PREFIX_BYTES,
    Due,
    due_part,
    last_id_end,
    split_due_part,
    time_part,
)
from queueber.db.records.leases import decode_lease, encode_lease
from queueber.db.records.runs import Run, count_items, decode_held, encode_held
from queueber.db.store.contract import Store
from queueber.engine.caps.key_changes import free_slots
from queueber.engine.kernel.transaction import Transaction
from queueber.engine.queue.blocks import Blocks
from queueber.ids import ItemId, LeaseId, made_at_ms
from queueber.limits import BLOCK_ITEMS_MAX, ID_BYTES
from queueber.model import LeaseInfo

LeaseOf = tuple[bytes, bytes]
"""An item, and the lease that holds it."""

HeldRuns = tuple[Due, list[Run]]
"""A lease: its expiry and id as in `lease_expiry`, and the runs that it holds."""

_BEFORE_ANY_EXPIRY_MS = -1
_AFTER_ANY_LEASE = b"\xff" * (ID_BYTES + 1)


@dataclass(frozen=True, slots=True)
class Taken:
    """What was taken out of leases."""

    runs: list[Run]
    held: list[bool]
    """For each id that was asked for, whether its lease held it."""
    is_in_order: bool = False
    """Whether the items of the runs are all that was asked for, in the same order."""


class Leases:
    """The leases of one queue."""

    __slots__ = ("_blocks", "_prefix", "_store")

    def __init__(self, store: Store, prefix: bytes, blocks: Blocks) -> None:
        self._store = store
        self._prefix = prefix
        self._blocks = blocks

    # --- reading ----------------------------------------------------------------------------------

    def read(self, lease_ids: Sequence[bytes]) -> Iterator[tuple[int, list[Run]]]:
        """For each lease its expiry and the runs that it holds; none if it has ended."""
        keys = [self._prefix + lease_id for lease_id in lease_ids]
        for entry in self._store.get_many(Family.LEASES, keys) if keys else []:
            if entry is None:
                yield _BEFORE_ANY_EXPIRY_MS, []
            else:
                expires_at_ms, held = decode_lease(entry)
                yield expires_at_ms, decode_held(held)

    def find(self, ids: Sequence[bytes]) -> list[LeaseOf]:
        """Those of the items that are leased, each with its lease."""
        wanted: dict[bytes, list[bytes]] = {}
        for item_id in ids:
            wanted.setdefault(self._block_of(item_id), []).append(item_id)
        found: list[LeaseOf] = []
        for block, of_block in wanted.items():
            start = self._prefix + block
            stop = start + _AFTER_ANY_LEASE
            entries = self._store.scan(Family.HOLDERS, start, stop, BLOCK_ITEMS_MAX)
            leases = [key[len(start) :] for key, _ in entries]
            for lease_id, (_, runs) in zip(leases, self.read(leases), strict=True):
                found += [
                    (item_id, lease_id)
                    for item_id in of_block
                    if any(run.position_of(item_id) is not None for run in runs)
                ]
        return found

    def _block_of(self, item_id: bytes) -> bytes:
        """The key in `holders` of the block that has the item, if a lease holds it."""
        start, stop = self._prefix + item_id, self._prefix + last_id_end(item_id)
        found = self._store.scan(Family.HOLDERS, start, stop, 1)
        return found[0][0][PREFIX_BYTES : PREFIX_BYTES + ID_BYTES] if found else item_id

    def page(self, after: bytes, limit: int) -> tuple[list[LeaseInfo], bool]:
        """Up to `limit` leases behind `after`, oldest first, and whether there are more.

        One that has expired is listed until the sweeper ends it, as its items are still leased.
        """
        prefix = self._prefix
        # The first key behind that of a lease is the same with a zero byte more.
        start = prefix + after + b"\0" if after else prefix
        stop = prefix + _AFTER_ANY_LEASE
        entries = self._store.scan(Family.LEASES, start, stop, limit + 1)
        listed = []
        for key, entry in entries[:limit]:
            lease_id, (expires_at_ms, held) = key[PREFIX_BYTES:], decode_lease(entry)
            items = count_items(decode_held(held))
            listed.append(LeaseInfo(lease_id, "", items, expires_at_ms, made_at_ms(lease_id)))
        return listed, len(entries) > limit

    # --- begin and extend -------------------------------------------------------------------------

    def put(
        self,
        tx: Transaction[Any],
        leases: Iterable[tuple[LeaseId, Sequence[Run]]],
        expires_at_ms: int,
    ) -> None:
        """Store new leases, each with the runs that it holds."""
        prefix, counters, batch = self._prefix, tx.counters, tx.batch
        expiry = prefix + time_part(expires_at_ms)
        for lease_id, runs in leases:
            held = encode_lease(expires_at_ms, encode_held(runs))
            batch.put(Family.LEASES, prefix + lease_id, held)
            for key in self._holder_keys(lease_id, runs):
                batch.put(Family.HOLDERS, key, b"")
            batch.put(Family.LEASE_EXPIRY, expiry + lease_id, b"")
            counters.leased += count_items(runs)
            counters.leases += 1
            counters.leases_total += 1
        self._expires(tx, expires_at_ms)

    def extend(self, tx: Transaction[Any], lease_id: bytes, expires_at_ms: int) -> bool:
        """Set the expiry of a lease; False when it has ended."""
        key, batch = self._prefix + lease_id, tx.batch
        entry = self._store.get(Family.LEASES, key)
        if entry is None:
            return False
        before_ms, held = decode_lease(entry)
        if before_ms <= tx.now_ms:
            return False
        # I4: the old expiry entry leaves in the same batch. When the time is the same, the put
        # wins.
        batch.delete(Family.LEASE_EXPIRY, self._prefix + due_part(before_ms, lease_id))
        batch.put(Family.LEASE_EXPIRY, self._prefix + due_part(expires_at_ms, lease_id), b"")
        batch.put(Family.LEASES, key, encode_lease(expires_at_ms, held))
        self._expires(tx, expires_at_ms)
        return True

    def _expires(self, tx: Transaction[Any], at_ms: int) -> None:
        tx.counters.lease_due_ms = min(tx.counters.lease_due_ms, at_ms)
        tx.due(at_ms)

    # --- items leave: how every outcome of work begins --------------------------------------------

    def take(
        self,
        tx: Transaction[Any],
        ids: Sequence[bytes],
        leases: Sequence[bytes],
        now_ms: int | None = None,
    ) -> Taken:
        """Take the items out of their leases; an item that its lease does not hold stays away.

        `leases` has one for each id; the caller moves each run to its next state. An expired lease
        holds nothing, even if the sweeper has not reached it: otherwise the outcome would depend on
        the sweeper's timing.
        """
        alive_at_ms = tx.now_ms if now_ms is None else now_ms
        ids_of: dict[bytes, list[bytes]] = {lease_id: [] for lease_id in leases}
        for item_id, lease_id in zip(ids, leases, strict=True):
            ids_of[lease_id].append(item_id)
        parts = [
            self._take_of(tx, due_part(expires_at_ms, lease_id), runs, asked)
            if expires_at_ms > alive_at_ms
            else Taken([], [False] * len(asked))
            for (lease_id, asked), (expires_at_ms, runs) in zip(
                ids_of.items(), self.read(list(ids_of)), strict=True
            )
        ]
        if len(parts) == 1:
            return parts[0]
        held = {lease_id: iter(part.held) for lease_id, part in zip(ids_of, parts, strict=True)}
        taken = [run for part in parts for run in part.runs]
        return Taken(taken, [next(held[lease_id]) for lease_id in leases])

    def take_whole(
        self, tx: Transaction[Any], leases: Sequence[bytes], counts: Sequence[int]
    ) -> list[list[Run]]:
        """For each lease all runs that it holds, if the number of items is its count; else none.

        A lease never gets further items, so the number says which items it still holds.
        """
        taken: list[list[Run]] = []
        ended: set[bytes] = set()
        for lease_id, count, (expires_at_ms, runs) in zip(
            leases, counts, self.read(leases), strict=True
        ):
            is_whole = count_items(runs) == count and expires_at_ms > tx.now_ms
            if is_whole and lease_id not in ended:
                ended.add(lease_id)
                self.end(tx, [(due_part(expires_at_ms, lease_id), runs)])
                taken.append(free_slots(tx, runs))
            else:
                taken.append([])
        return taken

    def take_from_any(self, tx: Transaction[Any], held: Sequence[LeaseOf]) -> list[Run]:
        """Take items out of the leases that hold them, expired or not."""
        if not held:
            return []
        ids, leases = zip(*held, strict=True)
        return self.take(tx, ids, leases, now_ms=_BEFORE_ANY_EXPIRY_MS).runs

    def _take_of(
        self, tx: Transaction[Any], due: Due, runs: list[Run], ids: Sequence[bytes]
    ) -> Taken:
        if (runs[0].ids if len(runs) == 1 else [i for run in runs for i in run.ids]) == ids:
            self.end(tx, [(due, runs)])
            return Taken(free_slots(tx, runs), [True] * len(ids), is_in_order=True)
        positions, held = _positions_of(runs, ids)
        blocks = self._blocks.reader()
        taken: list[Run] = []
        left: list[Run] = []
        for run in runs:
            of_run = sorted(positions.get(run.last, ()))
            if len(of_run) == run.count:
                taken.append(run)
            elif of_run:
                picked, others = pick(run, of_run, blocks.sizes(run))
                taken += picked
                left += others
            else:
                left.append(run)
        if not left:
            self.end(tx, [(due, taken)])
        elif taken:
            expires_at_ms, lease_id = split_due_part(due)
            kept = encode_lease(expires_at_ms, encode_held(join(left)))
            tx.batch.put(Family.LEASES, self._prefix + lease_id, kept)
            still = set(self._holder_keys(lease_id, left))
            gone = [key for key in self._holder_keys(lease_id, taken) if key not in still]
            tx.batch.delete_many(Family.HOLDERS, gone)
            tx.counters.leased -= count_items(taken)
        return Taken(free_slots(tx, taken), held)

    def end(self, tx: Transaction[Any], leases: Sequence[HeldRuns]) -> None:
        """End leases, each given as a due part (expiry and id) and the runs that it holds."""
        prefix, batch = self._prefix, tx.batch
        for due, runs in leases:
            lease_id = due[-ID_BYTES:]
            batch.delete(Family.LEASES, prefix + lease_id)
            batch.delete(Family.LEASE_EXPIRY, prefix + due)
            batch.delete_many(Family.HOLDERS, self._holder_keys(lease_id, runs))
            tx.counters.leased -= count_items(runs)
        tx.counters.leases -= len(leases)
        tx.leases_end([due[-ID_BYTES:] for due, _ in leases])

    def _holder_keys(self, lease_id: bytes, runs: Sequence[Run]) -> list[bytes]:
        """The keys in `holders` of a lease that holds the runs."""
        prefix = self._prefix
        if len(runs) == 1:
            return [prefix + runs[0].block + lease_id]
        return [prefix + block + lease_id for block in {run.block: None for run in runs}]


def _positions_of(
    runs: Sequence[Run], ids: Sequence[bytes]
) -> tuple[dict[ItemId, set[int]], list[bool]]:
    """By the last id of each run the positions of those ids that it has, and for each id whether
    some run has it; an id that is named twice counts once."""
    in_order = sorted(runs)
    lasts = [run.last for run in in_order]
    positions: dict[ItemId, set[int]] = {}
    held: list[bool] = []
    for item_id in ids:
        at = bisect_left(lasts, item_id)
        position = in_order[at].position_of(item_id) if at < len(lasts) else None
        if position is None:
            held.append(False)
            continue
        of_run = positions.setdefault(lasts[at], set())
        held.append(position not in of_run)
        of_run.add(position)
    return positions, held
