"""Delayed items: they become ready at a later time."""

from collections.abc import Sequence
from typing import Any

from queueber.db.families import Family
from queueber.db.records.keys import Entry, split_due_part
from queueber.engine.kernel.transaction import Transaction
from queueber.engine.queue.places import drop_places, put_places


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
