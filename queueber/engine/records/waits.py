"""Who waits for what in a queue, and the notes of what has ended.

The write that ends an item or a batch for which somebody waits leaves a note, and a duty lets those
go who wait for it, a slice at a time (`engine/queue/let_go.py`). So an end costs one entry, however
many wait for it, and a queue in which nobody waits pays one comparison.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from queueber.db.families import Family
from queueber.db.records.runs import Run
from queueber.db.records.waits import (
    AFTER_ANY_WAITER,
    DEAD,
    DONE,
    ITEM,
    batch_note,
    batch_what,
    decode_wait,
    encode_wait,
    items_note,
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
        first = run.ids[0]
        start, stop = prefix + ITEM + first, prefix + ITEM + run.last + AFTER_ANY_WAITER
        if tx.store.scan(Family.WAITED_FOR, start, stop, 1):
            _note(tx, items_note(first, run.last), is_done=is_done)


def dead_already(tx: Tx, item_id: bytes) -> None:
    """Somebody begins to wait for a dead letter."""
    _note(tx, items_note(item_id, item_id), is_done=False)


def batch_ended(tx: Tx, number: int) -> None:
    """A batch is complete."""
    if count_waiters(tx, batch_what(number), 1):
        _note(tx, batch_note(number), is_done=True)


def batch_dropped(tx: Tx, number: int) -> None:
    """A batch is forgotten, though nobody has noted that it was complete."""
    note = tx.store.get(Family.WAITED_FOR, tx.prefix + batch_note(number))
    if note is None and count_waiters(tx, batch_what(number), 1):
        _note(tx, batch_note(number), is_done=False)


def _note(tx: Tx, note: bytes, *, is_done: bool) -> None:
    key = tx.prefix + note
    noted: set[bytes] = tx.pending.setdefault((_note, tx.prefix), set())
    if key not in noted and tx.store.get(Family.WAITED_FOR, key) is None:
        tx.counters.waits_due += 1
    noted.add(key)
    tx.batch.put(Family.WAITED_FOR, key, DONE if is_done else DEAD)
    tx.due(tx.now_ms)
