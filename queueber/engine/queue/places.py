"""Delayed items, and the family `places`: how a ready or delayed item is found by its id.

Delayed items become ready at a later time. The indexes of both are sorted by time, so finding an
entry needs its time. For most runs that is the time in their ids. `places` stores the time of the
others: items that were delayed, failed or released.
"""

from collections.abc import Sequence
from typing import Any

from queueber.db.families import Family
from queueber.db.records.keys import (
    TIME_BYTES,
    due_part,
    last_id_end,
    split_due_part,
)
from queueber.db.records.runs import Entry, count_items, decode_entry, encode_run
from queueber.db.store.contract import Store
from queueber.engine.kernel.transaction import Transaction
from queueber.ids import made_at_ms


def put_delayed(tx: Transaction[Any], entries: Sequence[Entry]) -> None:
    """Store delayed runs, given in order."""
    prefix = tx.prefix
    encoded = [(prefix + due, encode_run(run)) for due, run in entries]
    tx.batch.put_many(Family.DELAYED, encoded)
    put_places(tx, entries)
    count_delayed(tx, _items(entries), split_due_part(entries[0][0])[0])


def count_delayed(tx: Transaction[Any], count: int, first_ms: int) -> None:
    """Count delayed items that are stored already; `first_ms` is the earliest of their times."""
    counters = tx.counters
    counters.delayed += count
    counters.delayed_due_ms = min(counters.delayed_due_ms, first_ms)
    tx.due(first_ms)


def take_delayed(
    tx: Transaction[Any], entries: Sequence[Entry], *, stay_placed: bool = False
) -> None:
    """`stay_placed` if they become ready now at their own time: `places` stays as it is."""
    prefix = tx.prefix
    tx.batch.delete_many(Family.DELAYED, [prefix + due for due, _ in entries])
    if not stay_placed:
        drop_places(tx, entries)
    tx.counters.delayed -= _items(entries)


def _items(entries: Sequence[Entry]) -> int:
    return count_items([run for _, run in entries])


def put_places(tx: Transaction[Any], entries: Sequence[Entry]) -> None:
    """Store the times of entries that enter an index."""
    prefix = tx.prefix
    # The rule of `is_where_its_id_says`, without a call for each entry; also below.
    moved = [due for due, _ in entries if due[2:8] != due[8:14]]
    places = [(prefix + due[TIME_BYTES:], due[:TIME_BYTES]) for due in moved]
    tx.batch.put_many(Family.PLACES, places)


def drop_places(tx: Transaction[Any], entries: Sequence[Entry]) -> None:
    """Delete the times of entries that leave an index."""
    prefix = tx.prefix
    places = [prefix + due[TIME_BYTES:] for due, _ in entries if due[2:8] != due[8:14]]
    if places:
        tx.batch.delete_many(Family.PLACES, places)


def find_times(store: Store, prefix: bytes, item_id: bytes) -> list[int]:
    """The times since or until which the item may be in an index: it is in none at any other.

    If `places` has the run of the item, it is the first one that ends with the item or later. If
    that is another run, the item's own has the time in its id.
    """
    found = store.scan(Family.PLACES, prefix + item_id, prefix + last_id_end(item_id), 1)
    times_ms = [int.from_bytes(time) for _, time in found]
    return list(dict.fromkeys([*times_ms, made_at_ms(item_id)]))


def find_entry(
    store: Store, family: Family, head: bytes, at_ms: int, item_id: bytes
) -> Entry | None:
    """The entry of a time index that has the item at that time, if there is one.

    `head` is what the keys begin with before the time.
    """
    start = head + due_part(at_ms, item_id)
    stop = head + due_part(at_ms, last_id_end(item_id))
    for key, value in store.scan(family, start, stop, 1):
        entry = decode_entry(key[len(head) :], value)
        if entry[1].position_of(item_id) is not None:
            return entry
    return None
