"""Batches: how many items of a fan-out were added, done and dead, with digests of their ids.

A digest is a sum over ids. If added equals done plus dead, in number and in digest,
each item that was added has ended exactly once.
"""

from collections.abc import Iterable
from enum import Enum
from typing import Any

from queueber.db.families import Family
from queueber.db.records import remembered as codec
from queueber.db.records.keys import DIGEST_BYTES, prefix_end, text_digest
from queueber.db.records.remembered import BatchRecord
from queueber.db.records.runs import Run, mark_batch
from queueber.db.store.contract import Entries, Store
from queueber.engine.kernel.transaction import Transaction
from queueber.engine.records import waits
from queueber.engine.records.batch_names import BatchNames
from queueber.engine.records.callbacks import Callbacks
from queueber.engine.records.retention import Retention
from queueber.errors import FailedPrecondition, NotFound, ResourceExhausted, invariant
from queueber.ids import ItemId
from queueber.limits import BATCH_NUMBER_MAX, ID_BYTES, MINUTE_MS
from queueber.model import BatchInfo, Receipt

Changed = dict[int, BatchRecord | None]
"""The batches that a transaction changes, by number; None for one that it drops."""

_FIRST_BATCH = 1
_AWAITED_MS = MINUTE_MS
"""When to look again at a batch that is to be forgotten, but whose callback waits."""


class Side(Enum):
    """How an item of a batch ended."""

    DONE = "done"
    DEAD = "dead"


class Batches:
    """The batches of one queue. A transaction encodes those that it changed when it commits."""

    __slots__ = (
        "_prefix", "_queue_name", "_reads", "_retention", "callbacks", "finished", "names",
    )  # fmt: skip

    def __init__(self, store: Store, prefix: bytes, queue_name: str, retention: Retention) -> None:
        self._reads = store
        self._prefix = prefix
        self._queue_name = queue_name
        self._retention = retention
        self.names = BatchNames(store, prefix)
        self.callbacks = Callbacks(store, prefix)
        self.finished: set[str] = set()
        """Batches without live items. The service empties this when it wakes the waiting calls."""
        retention.register(codec.FORGET_BATCH, self._look_at)

    # --- begin and hold ---------------------------------------------------------------------------

    def open(self, tx: Transaction[Any], name: str) -> int:
        """The number of a batch, which begins now if it is new."""
        number = self._number_in(tx, name)
        if number is not None:
            return number
        counters, settings = tx.counters, tx.queue.settings
        if settings.batches_max and counters.batches >= settings.batches_max:
            raise ResourceExhausted(
                f"queue {self._queue_name!r} remembers {counters.batches} batches, and the limit "
                f"(batches_max) is {settings.batches_max}; complete ones are forgotten "
                f"{settings.batch_keep_ms // 1000} s after their end (batch_keep), or by "
                "forget_batches"
            )
        if counters.last_batch >= BATCH_NUMBER_MAX:
            raise ResourceExhausted(
                f"queue {self._queue_name!r} has had {BATCH_NUMBER_MAX} batches, and has no number "
                "for another; use a new queue"
            )
        counters.batches += 1
        counters.last_batch += 1
        number = counters.last_batch
        name_key = self._prefix + text_digest(name)
        tx.batch.put(Family.BATCH_NAMES, name_key, codec.batch_number_part(number))
        self._changed_in(tx)[number] = BatchRecord(name)
        return number

    def forget(self, tx: Transaction[Any], name: str) -> bool:
        """Forget a batch that has ended; False if there is none of that name."""
        number = self._number_in(tx, name)
        if number is None:
            return False
        record = self._record(tx, number)
        if not record.has_ended:
            raise FailedPrecondition(
                f"batch: {name!r} of queue {self._queue_name!r} has {record.live} live items and "
                f"{record.loads} loads under way; it can be forgotten when it has neither"
            )
        if self._is_awaited(tx, number, record):
            raise FailedPrecondition(
                f"batch: the item of the callback of {name!r} of queue {self._queue_name!r} was "
                "not added yet; its callback says why"
            )
        self._forget_now(tx, number, record)
        return True

    def forget_some(
        self, tx: Transaction[Any], unchanged_for_ms: int, after: int, limit: int
    ) -> tuple[int, int]:
        """Look at up to `limit` batches after number `after`, and forget those that have ended and
        did not change for so long. How many they were, and after which number to go on; 0: none is
        left."""
        if after >= tx.counters.last_batch:
            return 0, 0
        start = self._prefix + codec.batch_number_part(after + 1)
        entries = self._reads.scan(Family.BATCHES, start, prefix_end(self._prefix), limit)
        forgotten = 0
        for key, stored in entries:
            record = codec.decode_batch(stored)
            number = int.from_bytes(key[len(self._prefix) :])
            if not record.has_ended or self._is_awaited(tx, number, record):
                continue
            if tx.now_ms - record.changed_at_ms >= unchanged_for_ms:
                self._forget_now(tx, number, record)
                forgotten += 1
        last = int.from_bytes(entries[-1][0][len(self._prefix) :]) if entries else 0
        return forgotten, last if len(entries) == limit else 0

    def _forget_now(self, tx: Transaction[Any], number: int, record: BatchRecord) -> None:
        """Forget a batch that has ended before its time has come."""
        self._retention.cancel(tx, record.forget_at_ms, batch_reference(number))
        self._changed_in(tx)[number] = record
        self._drop(tx, number)

    def _is_awaited(self, tx: Transaction[Any], number: int, record: BatchRecord) -> bool:
        """Whether the batch is to be kept for its callback. One without items that is not due is
        not: nobody knows whether it will ever get some."""
        if not tx.counters.callbacks:
            return False
        return self.callbacks.waits(number) if record.added else self.callbacks.is_due(number)

    def hold(self, tx: Transaction[Any], name: str) -> int:
        """As `open`, for a load: the batch is not complete before `let_go`."""
        number = self.open(tx, name)
        self._record(tx, number).loads += 1
        return number

    def let_go(self, tx: Transaction[Any], number: int) -> None:
        """A dropped load held the batch. If the load began it and it is empty, it is deleted,
        unless it has a callback: the load may begin anew."""
        record = self._record(tx, number)
        record.loads -= 1
        is_empty = record.added == 0 and not record.loads and not record.forget_at_ms
        has_callback = tx.counters.callbacks and self.callbacks.waits(number)
        if is_empty and not has_callback:
            self._drop(tx, number)
        else:
            self._touch(tx, number, record)

    # --- count ------------------------------------------------------------------------------------

    def count_added(self, tx: Transaction[Any], number: int, last: ItemId, count: int) -> None:
        """Count added items with consecutive ids; none if all items of a call were duplicates."""
        self._count_added(tx, number, count, codec.ids_digest(last, count))

    def count_loaded(self, tx: Transaction[Any], number: int, count: int, digest: int) -> None:
        """Count the items of the load that held the batch, and end its hold."""
        # As with an add, a batch that gets no item exists, and is complete.
        record = self._record(tx, number)
        record.loads -= 1
        self._count_added(tx, number, count, digest)
        if record.has_ended and not record.added:
            tx.before_write(self._ended_empty, tx, number)

    def _count_added(self, tx: Transaction[Any], number: int, count: int, digest: int) -> None:
        record = self._record(tx, number)
        record.added += count
        record.added_digest = (record.added_digest + digest) % codec.DIGEST_MODULUS
        self._touch(tx, number, record)

    def count_ended(self, tx: Transaction[Any], ended: Iterable[Run], side: Side) -> None:
        """Count items that are done or dead; those of no batch are ignored."""
        touched: dict[int, BatchRecord] = {}
        for run in ended:
            if number := mark_batch(run.mark):
                record = touched[number] = self._record(tx, number)
                _move(record, side, run.count, codec.ids_digest(run.last, run.count))
        for number, record in touched.items():
            self._touch(tx, number, record)

    def count_revived(self, tx: Transaction[Any], revived: Iterable[Run]) -> None:
        """Count dead items as live again; their batches must still exist."""
        for run in revived:
            if number := mark_batch(run.mark):
                record = self._record(tx, number)
                _move(record, Side.DEAD, -run.count, -codec.ids_digest(run.last, run.count))
                record.changed_at_ms = tx.now_ms

    # --- records ----------------------------------------------------------------------------------

    def _number_in(self, tx: Transaction[Any], name: str) -> int | None:
        """The number of a batch, with the changes of this transaction; None if there is none."""
        changed: Changed = tx.pending.get(self, {})
        for number, record in changed.items():
            if record is not None and record.name == name:
                return number
        known = self.names.number(name)
        return None if known in changed else known

    def _changed_in(self, tx: Transaction[Any]) -> Changed:
        records: Changed | None = tx.pending.get(self)
        if records is None:
            records = tx.pending[self] = {}
            tx.before_write(self._encode, tx, records)
            tx.after_write(self._note_finished, records)
        return records

    def _record(self, tx: Transaction[Any], number: int) -> BatchRecord:
        """The record of a batch. Callers change it in place; the transaction writes it."""
        records = self._changed_in(tx)
        record = records.get(number)
        if record is None:
            invariant(number not in records, "I10", queue=self._queue_name, dropped=number)
            stored = self._reads.get(Family.BATCHES, self._prefix + codec.batch_number_part(number))
            invariant(stored is not None, "I10", queue=self._queue_name, batch=number)
            record = records[number] = codec.decode_batch(stored or b"")
        return record

    def _encode(self, tx: Transaction[Any], records: Changed) -> None:
        for number, record in records.items():
            if record is not None:
                key = self._prefix + codec.batch_number_part(number)
                tx.batch.put(Family.BATCHES, key, codec.encode_batch(record))
                if tx.counters.callbacks:
                    is_complete = record.has_ended and record.added > 0
                    self.callbacks.batch_changed(tx, number, is_complete=is_complete)
                if tx.counters.waiting and record.has_ended and record.added > 0:
                    waits.batch_ended(tx, number)

    def _ended_empty(self, tx: Transaction[Any], number: int) -> None:
        """The last load of a batch that has no items brought none. Nobody can tell later that this
        was its end, so those who waited for it by now learn of it now."""
        if tx.counters.callbacks:
            self.callbacks.batch_changed(tx, number, is_complete=True)
        if tx.counters.waiting:
            waits.batch_ended(tx, number)

    def _note_finished(self, records: Changed) -> None:
        for record in records.values():
            if record is not None and record.has_ended:
                self.finished.add(record.name)

    def _touch(self, tx: Transaction[Any], number: int, record: BatchRecord) -> None:
        """Set the time of the last change, and schedule a batch that has ended to be forgotten."""
        record.changed_at_ms = tx.now_ms
        if record.has_ended and not record.forget_at_ms:
            record.forget_at_ms = tx.now_ms + tx.queue.settings.batch_keep_ms
            reference = batch_reference(number)
            self._retention.remember(tx, record.forget_at_ms, reference, codec.FORGET_BATCH)

    def _drop(self, tx: Transaction[Any], number: int) -> None:
        record = self._record(tx, number)
        self._changed_in(tx)[number] = None
        tx.batch.delete(Family.BATCHES, self._prefix + codec.batch_number_part(number))
        tx.batch.delete(Family.BATCH_NAMES, self._prefix + text_digest(record.name))
        tx.counters.batches -= 1
        if tx.counters.callback_records:
            self.callbacks.batch_dropped(tx, number)
        if tx.counters.waiting:
            waits.batch_dropped(tx, number)
        tx.after_write(self.finished.add, record.name)
        tx.after_write(self.names.forget, number)

    def _look_at(self, tx: Transaction[Any], at_ms: int, reference: bytes) -> None:
        number = int.from_bytes(reference[: codec.BATCH_NUMBER_BYTES])
        # With the changes of this transaction: it may just have dropped a load that held the batch.
        record = self._record(tx, number)
        keep_until_ms = record.changed_at_ms + tx.queue.settings.batch_keep_ms
        if not record.has_ended:
            # Items were added after its end. When it ends again, it gets a new entry.
            record.forget_at_ms = 0
        elif self._is_awaited(tx, number, record):
            record.forget_at_ms = max(keep_until_ms, tx.now_ms + _AWAITED_MS)
            self._retention.remember(tx, record.forget_at_ms, reference, codec.FORGET_BATCH)
        elif keep_until_ms > tx.now_ms:
            record.forget_at_ms = keep_until_ms
            self._retention.remember(tx, keep_until_ms, reference, codec.FORGET_BATCH)
        else:
            self._drop(tx, number)

    # --- reading ----------------------------------------------------------------------------------

    def receipt(self, name: str) -> Receipt:
        number = self.names.number(name)
        if number is None:
            raise NotFound(
                f"batch: queue {self._queue_name!r} knows no batch {name!r}; it begins with its "
                "first add, and is forgotten a while after its end (batch_keep), or by a call"
            )
        return self.receipt_of(number)

    def receipt_of(self, number: int) -> Receipt:
        """Of a batch that exists."""
        stored = self._reads.get(Family.BATCHES, self._prefix + codec.batch_number_part(number))
        return _receipt(codec.decode_batch(stored or b""))

    def page(self, end: int, limit: int) -> tuple[list[BatchInfo], bool]:
        """Up to `limit` batches with numbers below `end`, newest first; whether there are more."""
        entries = self._newest(end, limit + 1)
        listed = [
            BatchInfo(
                int.from_bytes(key[len(self._prefix) :]), _receipt(codec.decode_batch(stored))
            )
            for key, stored in entries[:limit]
        ]
        return listed, len(entries) > limit

    def _newest(self, end: int, count: int) -> Entries:
        """The last `count` entries before number `end`, last first.

        A store is scanned forwards only. So this looks at one span of numbers after the other, from
        the end on; a span is widened while few of its batches are remembered.
        """
        found: Entries = []
        width = count
        while end > _FIRST_BATCH and len(found) < count:
            begin = max(_FIRST_BATCH, end - width)
            start, stop = (self._prefix + codec.batch_number_part(n) for n in (begin, end))
            entries = self._reads.scan(Family.BATCHES, start, stop, count + 1)
            if len(entries) > count:
                width = max(count, width // 2)  # too many to tell which are the last
                continue
            found += reversed(entries)
            end = begin
            if 2 * len(entries) < count:
                width *= 2
        return found[:count]


def _receipt(record: BatchRecord) -> Receipt:
    ended_digest = (record.done_digest + record.dead_digest) % codec.DIGEST_MODULUS
    return Receipt(
        batch=record.name,
        added=record.added,
        done=record.done,
        dead=record.dead,
        live=record.live,
        added_digest=record.added_digest.to_bytes(DIGEST_BYTES),
        done_digest=record.done_digest.to_bytes(DIGEST_BYTES),
        dead_digest=record.dead_digest.to_bytes(DIGEST_BYTES),
        complete=record.has_ended and record.added_digest == ended_digest,
    )


def _move(record: BatchRecord, side: Side, count: int, digest: int) -> None:
    if side is Side.DONE:
        record.done += count
        record.done_digest = (record.done_digest + digest) % codec.DIGEST_MODULUS
    else:
        record.dead += count
        record.dead_digest = (record.dead_digest + digest) % codec.DIGEST_MODULUS


def batch_reference(number: int) -> bytes:
    """How an entry of the family `forget` names a batch."""
    return codec.batch_number_part(number) + bytes(ID_BYTES - codec.BATCH_NUMBER_BYTES)
