"""Leases: who holds which items until when.

A lease lists the items that it holds; the family `holders` leads back from an item to its lease. It
has an entry for each lease and block of ids, where a block is all ids that differ in the last byte
only. Items that were added together have neighbouring ids and are mostly leased together, so even
a large lease has an entry or two. A block has 256 ids, so at most 256 leases are read to find the
lease of an item.
"""

from collections.abc import Collection, Iterator, Sequence
from itertools import chain
from typing import Any, cast

from queueber.db.families import Family
from queueber.db.records.items import LeaseOf, decode_lease, encode_lease, is_held, split_held
from queueber.db.records.keys import (
    ID_BLOCK_BYTES,
    Due,
    HeldItem,
    Mark,
    due_part,
    id_block,
    split_due_part,
    time_part,
)
from queueber.db.store.contract import Entries, Store
from queueber.engine.kernel.transaction import Transaction
from queueber.ids import ItemId, LeaseId
from queueber.limits import ID_BYTES

Marks = list[Mark | None]

_BEFORE_ANY_EXPIRY_MS = -1
_ENDED = (_BEFORE_ANY_EXPIRY_MS, b"")
_BLOCK_IDS = 256
_AFTER_ANY_LEASE = b"\xff" * (ID_BYTES + 1)


class Leases:
    """The leases of one queue."""

    __slots__ = ("_prefix", "_store")

    def __init__(self, store: Store, prefix: bytes) -> None:
        self._store = store
        self._prefix = prefix

    # --- reading ----------------------------------------------------------------------------------

    def read(self, lease_ids: Sequence[bytes]) -> Iterator[tuple[int, bytes]]:
        """For each lease its expiry and the items that it holds; none if it has ended."""
        keys = [self._prefix + lease_id for lease_id in lease_ids]
        for entry in self._store.get_many(Family.LEASES, keys) if keys else []:
            yield _ENDED if entry is None else decode_lease(entry)

    def find(self, ids: Sequence[bytes]) -> list[LeaseOf]:
        """Those of the items that are leased, each with its lease."""
        wanted: dict[bytes, list[bytes]] = {}
        for item_id in ids:
            wanted.setdefault(id_block(item_id), []).append(item_id)
        found: list[LeaseOf] = []
        for block, of_block in wanted.items():
            start = self._prefix + block
            entries = self._store.scan(Family.HOLDERS, start, start + _AFTER_ANY_LEASE, _BLOCK_IDS)
            leases = [key[len(start) :] for key, _ in entries]
            for lease_id, (_, held) in zip(leases, self.read(leases), strict=True):
                items = [(item_id, lease_id) for item_id in of_block if is_held(held, item_id)]
                found += cast("list[LeaseOf]", items)
        return found

    # --- begin and extend -------------------------------------------------------------------------

    def put(
        self,
        tx: Transaction[Any],
        lease_ids: Sequence[LeaseId],
        ids_of: Sequence[list[ItemId]],
        marks_of: Sequence[list[Mark]],
        expires_at_ms: int,
    ) -> None:
        """Store new leases, each with the ids and marks of the items that it holds."""
        prefix, counters = self._prefix, tx.counters
        leases: Entries = []
        holders: list[bytes] = []
        for lease_id, ids, marks in zip(lease_ids, ids_of, marks_of, strict=True):
            held = b"".join(chain.from_iterable(zip(ids, marks, strict=True)))
            leases.append((prefix + lease_id, encode_lease(expires_at_ms, held)))
            holders += self._holder_keys(lease_id, ids)
            counters.leased += len(ids)
        expiry = prefix + time_part(expires_at_ms)
        tx.batch.put_many(Family.LEASES, leases)
        tx.batch.put_many(Family.HOLDERS, [(key, b"") for key in holders])
        tx.batch.put_many(Family.LEASE_EXPIRY, [(expiry + each, b"") for each in lease_ids])
        counters.leases += len(lease_ids)
        counters.leases_total += len(lease_ids)
        self._expires(tx, expires_at_ms)

    def extend(self, tx: Transaction[Any], lease_id: bytes, expires_at_ms: int) -> bool:
        """Set the expiry of a lease; False when it has ended."""
        ((before_ms, held),) = self.read([lease_id])
        if before_ms <= tx.now_ms:
            return False
        key, batch = self._prefix + lease_id, tx.batch
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
    ) -> Marks:
        """For each id its mark, if its lease holds it, else None. The items leave their leases.

        `leases` has one for each id; the caller moves each item to its next state. An expired lease
        holds nothing, even if the sweeper has not reached it: otherwise the outcome would depend on
        the sweeper's timing.
        """
        alive_at_ms = tx.now_ms if now_ms is None else now_ms
        ids_of: dict[bytes, list[bytes]] = {lease_id: [] for lease_id in leases}
        if len(ids_of) == 1:
            ids_of[leases[0]] = list(ids)
        else:
            for item_id, lease_id in zip(ids, leases, strict=True):
                ids_of[lease_id].append(item_id)
        found: dict[bytes, Iterator[Mark | None]] = {}
        for (lease_id, asked), (expires_at_ms, held) in zip(
            ids_of.items(), self.read(list(ids_of)), strict=True
        ):
            marks: Marks = [None] * len(asked)
            if expires_at_ms > alive_at_ms:
                marks = self._take_of(tx, due_part(expires_at_ms, lease_id), held, asked)
            if len(ids_of) == 1:
                return marks
            found[lease_id] = iter(marks)
        return [next(found[lease_id]) for lease_id in leases]

    def take_whole(
        self, tx: Transaction[Any], leases: Sequence[bytes], counts: Sequence[int]
    ) -> list[list[HeldItem]]:
        """For each lease all items that it holds, if their number is its count; else none.

        A lease never gets further items, so the number says which items it still holds.
        """
        taken: list[list[HeldItem]] = []
        ended: set[bytes] = set()
        for lease_id, count, (expires_at_ms, held) in zip(
            leases, counts, self.read(leases), strict=True
        ):
            items = split_held(held)
            if len(items) == count and expires_at_ms > tx.now_ms and lease_id not in ended:
                ended.add(lease_id)
                self.end(tx, [(due_part(expires_at_ms, lease_id), items)])
                taken.append(items)
            else:
                taken.append([])
        return taken

    def take_from_any(self, tx: Transaction[Any], held: Sequence[LeaseOf]) -> list[HeldItem]:
        """Take items out of the leases that hold them, expired or not."""
        if not held:
            return []
        ids, leases = zip(*held, strict=True)
        return held_items(ids, self.take(tx, ids, leases, now_ms=_BEFORE_ANY_EXPIRY_MS))

    def _take_of(self, tx: Transaction[Any], due: Due, held: bytes, ids: list[bytes]) -> Marks:
        items = split_held(held)
        remaining: dict[bytes, Mark] = dict(items)
        if list(remaining) == ids:
            self.end(tx, [(due, items)])
            return list(remaining.values())
        marks: Marks = [remaining.pop(item_id, None) for item_id in ids]
        taken = held_items(ids, marks)
        if not remaining:
            self.end(tx, [(due, taken)])
        elif taken:
            expires_at_ms, lease_id = split_due_part(due)
            kept = b"".join([item_id + mark for item_id, mark in remaining.items()])
            tx.batch.put(Family.LEASES, self._prefix + lease_id, encode_lease(expires_at_ms, kept))
            still = set(self._holder_keys(lease_id, remaining))
            left = self._holder_keys(lease_id, [item_id for item_id, _ in taken])
            tx.batch.delete_many(Family.HOLDERS, [key for key in left if key not in still])
            tx.counters.leased -= len(taken)
        return marks

    def end(self, tx: Transaction[Any], leases: Sequence[tuple[Due, list[HeldItem]]]) -> None:
        """End leases, each given as a due part (expiry and id) and the items that it holds."""
        prefix, batch = self._prefix, tx.batch
        for due, items in leases:
            lease_id = due[-ID_BYTES:]
            batch.delete(Family.LEASES, prefix + lease_id)
            batch.delete(Family.LEASE_EXPIRY, prefix + due)
            ids = [item_id for item_id, _ in items]
            batch.delete_many(Family.HOLDERS, self._holder_keys(lease_id, ids))
            tx.counters.leased -= len(items)
        tx.counters.leases -= len(leases)

    def _holder_keys(self, lease_id: bytes, ids: Collection[bytes]) -> list[bytes]:
        """The keys in `holders` of a lease that holds the items."""
        if not ids:
            return []
        first, last = id_block(min(ids)), id_block(max(ids))
        # Most often all are of one block: it has every id between two of its ids.
        blocks = {first} if first == last else {item_id[:ID_BLOCK_BYTES] for item_id in ids}
        return [self._prefix + block + lease_id for block in sorted(blocks)]


def held_items(ids: Sequence[bytes], marks: Marks) -> list[HeldItem]:
    """The items whose mark was found, so that their ids are known to be ids of items."""
    items = [(i, mark) for i, mark in zip(ids, marks, strict=True) if mark is not None]
    return cast("list[HeldItem]", items)
