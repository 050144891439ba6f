"""Callbacks: once a batch is complete, an item is added, exactly once and with the receipt.

The write that adds the item is the one that marks the callback as done, whichever queue gets it.
"""

from queueber.db.records.callbacks import CallbackRecord, callback_digest
from queueber.engine.kernel.due_scan import Done
from queueber.engine.queue.add import add, check_contents
from queueber.engine.queue.queue_state import QueueState, QueueTx
from queueber.engine.queue.queues import Queues
from queueber.errors import (
    FailedPrecondition,
    NotFound,
    QueueberError,
    ResourceExhausted,
    invariant,
)
from queueber.ids import ItemId
from queueber.limits import CALLBACKS_MAX, CALLBACKS_TOGETHER
from queueber.model import NO_OPTIONS, Callback, CallbackInfo, NewItems, receipt_attributes


class QueueCallbacks:
    """The callbacks of one queue's batches, whose items may be added to others."""

    __slots__ = ("_queue", "_queues")

    def __init__(self, queue: QueueState, queues: Queues) -> None:
        self._queue = queue
        self._queues = queues
        if queue.counters.callbacks:
            queue.batches.callbacks.read_due()

    # --- asking -----------------------------------------------------------------------------------

    def describe(self, batch: str) -> CallbackInfo:
        number = self._number(batch)
        record = self._queue.batches.callbacks.get(number)
        if record is None:
            raise NotFound(
                f"batch: {batch!r} of queue {self._queue.name!r} has no callback; "
                "when_complete gives it one"
            )
        return self._info(batch, number, record)

    def _info(self, batch: str, number: int, record: CallbackRecord) -> CallbackInfo:
        to = record.callback.to
        problem = self._queue.batches.callbacks.problem(number, to)
        return CallbackInfo(batch, to, record.created_at_ms, record.item_id, problem)

    def _number(self, batch: str) -> int:
        queue = self._queue
        queue.batches.receipt(batch)  # it says if there is no such batch
        return queue.batches.names.number(batch) or 0

    # --- storing ----------------------------------------------------------------------------------

    def check(self, batch: str, callback: Callback) -> bool:
        """Whether there is anything to be done; false if the item of this callback was added.
        Raises what refuses a callback whichever queue gets its item."""
        queue, batches = self._queue, self._queue.batches
        receipt = batches.receipt(batch)
        known = batches.callbacks.get(self._number(batch))
        if known is not None and known.digest == callback_digest(callback):
            return not known.item_id
        if known is not None and known.item_id:
            raise FailedPrecondition(
                f"batch: the callback of {batch!r} of queue {queue.name!r} has added item "
                f"{known.item_id.hex()}; use another batch, or forget this one first"
            )
        if known is None and queue.counters.callbacks >= CALLBACKS_MAX:
            raise ResourceExhausted(
                f"queue {queue.name!r} has {queue.counters.callbacks} callbacks of batches that "
                "are not complete, the limit"
            )
        is_empty = receipt.complete and not receipt.added
        if is_empty and not batches.callbacks.is_due(self._number(batch)):
            raise FailedPrecondition(
                f"batch: {batch!r} of queue {queue.name!r} has no items; add them first"
            )
        return True

    def put(self, tx: QueueTx, batch: str, callback: Callback) -> CallbackInfo:
        """Add the item once the batch is complete; at once if it is. A call that is repeated
        changes nothing. Before the item was added, another callback takes the place of the one
        there is."""
        self.check(batch, callback)
        batches, number = self._queue.batches, self._number(batch)
        callbacks, digest = batches.callbacks, callback_digest(callback)
        known = callbacks.get(number)
        if known is not None and known.digest == digest:
            return self._info(batch, number, known)
        check_contents(self._queues.get(callback.to), [callback.contents])
        record = CallbackRecord(callback, tx.now_ms, digest)
        if batches.receipt_of(number).complete:
            try:
                (item_id,) = self._add(tx, callback.to, [(number, record)])
            except QueueberError as error:
                callbacks.put(tx, number, record, is_due=True)
                tx.after_write(callbacks.refused, callback.to, [number], tx.now_ms, str(error))
                return CallbackInfo(batch, callback.to, tx.now_ms, problem=str(error))
            return CallbackInfo(batch, callback.to, tx.now_ms, item_id)
        callbacks.put(tx, number, record, is_due=False)
        return CallbackInfo(batch, callback.to, tx.now_ms)

    # --- adding -----------------------------------------------------------------------------------

    def due_ms(self) -> int:
        return self._queue.batches.callbacks.due_ms()

    def run_due(self, tx: QueueTx) -> Done:
        """Those of one queue: one that refuses its items holds up no other."""
        callbacks = self._queue.batches.callbacks
        to, numbers = callbacks.first_due(CALLBACKS_TOGETHER)
        try:
            self._add_some(tx, to, numbers)
        except QueueberError as error:
            # Nothing was written. There may be room for one of them alone.
            if len(numbers) == 1:
                callbacks.refused(to, numbers, tx.now_ms, str(error))
                return Done(0)
            del numbers[1:]
            try:
                self._add_some(tx, to, numbers)
            except QueueberError as alone:
                callbacks.refused(to, numbers, tx.now_ms, str(alone))
                return Done(0)
        return Done(len(numbers))

    def _add_some(self, tx: QueueTx, to: str, numbers: list[int]) -> None:
        found: list[tuple[int, CallbackRecord]] = []
        for number in numbers:
            record = self._queue.batches.callbacks.get(number)
            invariant(record is not None, "I24", queue=self._queue.name, batch=number)
            if record is not None:
                found.append((number, record))
        self._add(tx, to, found)

    def _add(self, tx: QueueTx, to: str, found: list[tuple[int, CallbackRecord]]) -> list[ItemId]:
        """Add the items of callbacks whose batch is complete. Raises before anything is written."""
        queue, batches, target = self._queue, self._queue.batches, self._queues.get(to)
        part = tx if target is queue else tx.join(target)
        given = [record.callback for _, record in found]
        receipts = [batches.receipt_of(number) for number, _ in found]
        for receipt in receipts:
            invariant(receipt.complete, "I24", queue=queue.name, batch=receipt.batch)
        options = [each.options for each in given]
        items = NewItems(
            [each.contents for each in given],
            priorities=[each.priority for each in given],
            keys=[each.key for each in given],
            attributes=[
                {**callback.attributes, **receipt_attributes(queue.name, receipt)}
                for callback, receipt in zip(given, receipts, strict=True)
            ],
            options=options if any(each != NO_OPTIONS for each in options) else (),
        )
        ids = [ItemId(each) for each in add(part, items).ids]
        for (number, record), item_id in zip(found, ids, strict=True):
            batches.callbacks.item_added(tx, number, record, item_id)
        if part is not tx:
            part.due(tx.now_ms)  # the look has waiting polls served
        return ids
