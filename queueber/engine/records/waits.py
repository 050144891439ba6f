"""Who waits for what in a queue, and the notes of what has ended.

The write that ends an item or a batch for which somebody waits leaves a note, and a duty lets those
go who wait for it, a slice at a time (`engine/queue/let_go.py`). So an end costs one entry, however
many wait for it, and a queue in which nobody waits pays one comparison.

What has ended may be live again before its note is read: a dead letter is redriven, a batch gets
more items. So a note is about those only who waited at that time, and notes are read in the order
of the ends: what decides about an item is the first end after it began to wait.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from queueber.db.families import Family
from queueber.db.records.runs import Run
from queueber.db.records.waits import (
    AFTER_ANY_WAITER,
    DEAD,
    DONE,
    Note,
    batch_what,
    decode_wait,
    encode_note,
    encode_wait,
    item_what,
    note_key,
)
from queueber.engine.kernel.transaction import Transaction
from queueber.ids import ItemId

Tx = Transaction[Any]


def put_waits(
    tx: Tx, waiters: Sequence[ItemId], delays_ms: Sequence[int], whats: Sequence[bytes]
) -> None:
    """These items wait for all of `whats`; of them some may have ended, and be noted."""
    prefix, encoded = tx.prefix, {each: encode_wait(each, whats) for each in set(delays_ms)}
    for waiter, delay_ms in zip(waiters, delays_ms, strict=True):
        tx.batch.put(Family.WAITS, prefix + waiter, encoded[delay_ms])
        tx.batch.put_many(Family.WAITED_FOR, [(prefix + what + waiter, b"") for what in whats])
    tx.counters.waiting += len(waiters)


def count_waiters(tx: Tx, what: bytes, limit: int) -> int:
    """How many wait for it, up to a limit."""
    start = tx.prefix + what
    return len(tx.store.scan(Family.WAITED_FOR, start, start + AFTER_ANY_WAITER, limit))


def stop_waiting(tx: Tx, runs: Iterable[Run]) -> None:
    """These items are gone or dead; some of them may have been waiting."""
    ids = [item_id for run in runs for item_id in run.ids]
    prefix = tx.prefix
    stored = tx.store.get_many(Family.WAITS, [prefix + item_id for item_id in ids])
    for item_id, value in zip(ids, stored, strict=True):
        if value is not None:
            tx.batch.delete(Family.WAITS, prefix + item_id)
            keys = [prefix + what + item_id for what in decode_wait(value).whats]
            tx.batch.delete_many(Family.WAITED_FOR, keys)
            tx.counters.waiting -= 1


def items_ended(tx: Tx, runs: Iterable[Run], *, is_done: bool) -> None:
    """Note those of the items for which somebody waits."""
    prefix = tx.prefix
    for run in runs:
        first, last = item_what(run.ids[0]), item_what(run.last)
        if tx.store.scan(Family.WAITED_FOR, prefix + first, prefix + last + AFTER_ANY_WAITER, 1):
            _note(tx, first, last, DONE if is_done else DEAD)


def dead_already(tx: Tx, item_id: bytes) -> None:
    """Somebody begins to wait for a dead letter."""
    _note(tx, item_what(item_id), item_what(item_id), DEAD)


def batch_ended(tx: Tx, number: int) -> None:
    """A batch is complete."""
    _batch_ended(tx, number, DONE)


def batch_dropped(tx: Tx, number: int) -> None:
    """A batch is forgotten. Those who waited for it when it was complete have a note of that."""
    _batch_ended(tx, number, DEAD)


def _batch_ended(tx: Tx, number: int, outcome: bytes) -> None:
    what = batch_what(number)
    if count_waiters(tx, what, 1):
        _note(tx, what, what, outcome)


def _note(tx: Tx, first: bytes, last: bytes, outcome: bytes) -> None:
    counters = tx.counters
    counters.last_note += 1
    counters.waits_due += 1
    note = Note(outcome, first, last, counters.last_id)
    key = tx.prefix + note_key(counters.last_note)
    tx.batch.put(Family.WAITED_FOR, key, encode_note(note))
    tx.due(tx.now_ms)
