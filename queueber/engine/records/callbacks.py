"""Callbacks of batches: their records, and which of them are due.

A batch has one callback at most. It is due from the write that completes the batch to the one that
adds its item, and has an entry of its own in between; so it is found again after a restart. If the
batch gets live items before that, it is due no more. The record stays as long as the batch, so that
a call that is repeated is known.
"""

from typing import Any

from queueber.db.families import Family
from queueber.db.records.callbacks import (
    AFTER_DUE,
    DUE,
    CallbackRecord,
    callback_key,
    decode_callback,
    due_key,
    encode_callback,
    number_of,
)
from queueber.db.records.keys import NEVER_MS
from queueber.db.store.contract import Store
from queueber.engine.kernel.transaction import Transaction
from queueber.ids import ItemId
from queueber.limits import CALLBACK_RETRY_MS
from queueber.model import Callback


class Callbacks:
    """The callbacks of one queue."""

    __slots__ = ("_due", "_prefix", "_refused", "_store")

    def __init__(self, store: Store, prefix: bytes) -> None:
        self._store = store
        self._prefix = prefix
        self._due: dict[str, dict[int, None]] = {}
        """The batches whose callback is due, by the queue that gets the item, in order."""
        self._refused: dict[str, tuple[int, str]] = {}
        """Queues that refused an item: when to try again, and why."""

    def read_due(self) -> None:
        """Take in which callbacks are due."""
        prefix = self._prefix
        for key, to in self._store.walk(Family.CALLBACKS, prefix + DUE, prefix + AFTER_DUE):
            self._now_due(to.decode(), number_of(key[len(prefix) :]))

    # --- asking -----------------------------------------------------------------------------------

    def get(self, number: int) -> CallbackRecord | None:
        stored = self._store.get(Family.CALLBACKS, self._prefix + callback_key(number))
        return None if stored is None else decode_callback(stored)

    def waits(self, number: int) -> bool:
        """Whether the batch has a callback whose item was not added."""
        record = self.get(number)
        return record is not None and not record.item_id

    def is_due(self, number: int) -> bool:
        return any(number in numbers for numbers in self._due.values())

    def problem(self, number: int, to: str) -> str:
        """Why a callback that is due has not added its item."""
        return self._refused[to][1] if self._is_due_to(number, to) and to in self._refused else ""

    def due_ms(self) -> int:
        """When to add the items of some that are due."""
        return min([self._try_at_ms(to) for to in self._due], default=NEVER_MS)

    def first_due(self, limit: int) -> tuple[str, list[int]]:
        """A queue to try first, and some of the batches whose callback adds to it."""
        to = min(self._due, key=self._try_at_ms)
        return to, [number for number, _ in zip(self._due[to], range(limit), strict=False)]

    def _try_at_ms(self, to: str) -> int:
        return self._refused[to][0] if to in self._refused else 0

    def _is_due_to(self, number: int, to: str) -> bool:
        return number in self._due.get(to, ())

    # --- changing ---------------------------------------------------------------------------------

    def put(
        self, tx: Transaction[Any], number: int, record: CallbackRecord, *, is_due: bool
    ) -> None:
        """Store a callback whose item is not added yet, in place of the one that the batch has."""
        known = self.get(number)
        if known is None:
            tx.counters.callbacks += 1
            tx.counters.callback_records += 1
        elif self._is_due_to(number, known.callback.to):
            self._not_due(tx, number, known.callback.to)
        self._write(tx, number, record)
        if is_due:
            self._make_due(tx, number, record.callback.to)

    def batch_changed(self, tx: Transaction[Any], number: int, *, is_complete: bool) -> None:
        """A batch is as it will be after this transaction."""
        if not is_complete:
            for to in [to for to in self._due if number in self._due[to]]:
                self._not_due(tx, number, to)
            return
        record = self.get(number)
        if record is not None and not record.item_id:
            to = record.callback.to
            if not self._is_due_to(number, to):
                self._make_due(tx, number, to)

    def item_added(
        self, tx: Transaction[Any], number: int, record: CallbackRecord, item_id: ItemId
    ) -> None:
        """The item of a callback is added in this transaction."""
        to, known = record.callback.to, self.get(number)
        if known is None:
            tx.counters.callback_records += 1
        else:
            tx.counters.callbacks -= 1
            self._not_due(tx, number, known.callback.to)
        left = record._replace(callback=Callback(to), item_id=item_id)
        self._write(tx, number, left)
        tx.after_write(self._refused.pop, to, None)

    def refused(self, to: str, numbers: list[int], now_ms: int, problem: str) -> None:
        """A queue did not take the items of these; others are tried first when the time comes."""
        self._refused[to] = now_ms + CALLBACK_RETRY_MS, problem
        due = self._due.get(to, {})
        for number in numbers:
            if number in due:
                due[number] = due.pop(number)

    def batch_dropped(self, tx: Transaction[Any], number: int) -> None:
        """A batch is forgotten, with its callback."""
        record = self.get(number)
        if record is not None:
            tx.batch.delete(Family.CALLBACKS, self._prefix + callback_key(number))
            tx.counters.callback_records -= 1
            if not record.item_id:
                tx.counters.callbacks -= 1
                self._not_due(tx, number, record.callback.to)

    def _write(self, tx: Transaction[Any], number: int, record: CallbackRecord) -> None:
        key = self._prefix + callback_key(number)
        tx.batch.put(Family.CALLBACKS, key, encode_callback(record))

    def _make_due(self, tx: Transaction[Any], number: int, to: str) -> None:
        tx.batch.put(Family.CALLBACKS, self._prefix + due_key(number), to.encode())
        tx.due(tx.now_ms)
        tx.after_write(self._now_due, to, number)

    def _not_due(self, tx: Transaction[Any], number: int, to: str) -> None:
        if self._is_due_to(number, to):
            tx.batch.delete(Family.CALLBACKS, self._prefix + due_key(number))
            tx.after_write(self._no_more_due, to, number)

    # --- memory -----------------------------------------------------------------------------------

    def _now_due(self, to: str, number: int) -> None:
        self._due.setdefault(to, {})[number] = None

    def _no_more_due(self, to: str, number: int) -> None:
        # The next queue that has some comes first.
        numbers = self._due.pop(to)
        del numbers[number]
        if numbers:
            self._due[to] = numbers
        else:
            self._refused.pop(to, None)
