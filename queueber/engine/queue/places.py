"""Delayed items, and the family `places`: how a ready or delayed item is found by its id.

Delayed items become ready at a later time. The indexes of both are sorted by time, so finding an
entry needs its time. For most items that is the time in the id. `places` stores the time of the
others: items that were delayed, failed or released.
"""

from collections.abc import Sequence
from typing import Any

from queueber.db.families import Family
from queueber.db.records.keys import TIME_BYTES, Due, Entry, due_part, split_due_part
from queueber.engine.kernel.transaction import Transaction
from queueber.ids import made_at_ms


def put_delayed(tx: Transaction[Any], entries: Sequence[Entry]) -> None:
    prefix = tx.prefix
    tx.batch.put_many(Family.DELAYED, [(prefix + due, mark) for due, mark in entries])
    put_places(tx, entries)
    count_delayed(tx, len(entries), split_due_part(min(entries)[0])[0])


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
    tx.counters.delayed -= len(entries)


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


def find_places(tx: Transaction[Any], ids: Sequence[bytes]) -> list[Due]:
    """For each item the due part that it has if it is ready or delayed."""
    times = tx.store.get_many(Family.PLACES, [tx.prefix + item_id for item_id in ids])
    return [
        due_part(made_at_ms(item_id) if time is None else int.from_bytes(time), item_id)
        for item_id, time in zip(ids, times, strict=True)
    ]
