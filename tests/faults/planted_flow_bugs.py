"""Bugs of workflows that are planted on purpose: the simulation must find each of them."""

from dataclasses import replace
from typing import Any

from queueber.db.records import callbacks as records
from queueber.db.records.waits import Wait, decode_wait
from queueber.engine.flow.callbacks import QueueCallbacks
from queueber.engine.kernel.transaction import Transaction
from queueber.engine.queue.cancel import cancel_key
from queueber.engine.queue.queue_state import QueueTx
from queueber.engine.records.batches import Batches
from queueber.engine.records.callbacks import Callbacks
from queueber.model import NO_OPTIONS
from tests.faults.planted_bugs import Bug, Patch


def note_in_a_second_write_that_an_item_was_called_back(patch: Patch) -> None:
    item_added = Callbacks.item_added

    def later(callbacks: Callbacks, tx: Any, *arguments: Any) -> None:
        tx.after_write(second, callbacks, tx._kernel, tx.now_ms, tx.queue, arguments)

    def second(callbacks: Callbacks, kernel: Any, now_ms: int, queue: Any, arguments: Any) -> None:
        tx = Transaction(kernel, now_ms, queue)
        item_added(callbacks, tx, *arguments)
        tx.commit()

    patch.setattr(Callbacks, "item_added", later)


def remember_in_memory_alone_which_callbacks_are_due(patch: Patch) -> None:
    def make_due(callbacks: Callbacks, tx: Any, number: int, to: str) -> None:
        tx.due(tx.now_ms)
        tx.after_write(callbacks._now_due, to, number)

    patch.setattr(Callbacks, "_make_due", make_due)
    patch.setattr("queueber.engine.integrity.check_store.check_callbacks", lambda _: ())


def call_back_without_a_look_at_the_batch(patch: Patch) -> None:
    put = QueueCallbacks.put

    def hasty(callbacks: QueueCallbacks, tx: Any, batch: str, callback: Any) -> Any:
        with Patch.context() as inside:
            receipt_of = Batches.receipt_of

            def complete(batches: Batches, number: int) -> Any:
                found = receipt_of(batches, number)
                return type(found)(
                    **{name: getattr(found, name) for name in found.__slots__} | {"complete": True}
                )

            inside.setattr(Batches, "receipt_of", complete)
            return put(callbacks, tx, batch, callback)

    patch.setattr(QueueCallbacks, "put", hasty)


def let_go_at_the_first_end(patch: Patch) -> None:
    def hasty(value: bytes) -> Wait:
        found = decode_wait(value)
        return found._replace(whats=found.whats[:1])

    patch.setattr("queueber.engine.queue.let_go.decode_wait", hasty)


def note_no_end_of_items_that_are_removed(patch: Patch) -> None:
    patch.setattr("queueber.engine.queue.remove.items_ended", lambda *_, **__: None)


def store_nothing_of_what_the_item_of_a_callback_has_of_its_own(patch: Patch) -> None:
    encode = records.encode_callback

    def without(record: records.CallbackRecord) -> bytes:
        callback = replace(record.callback, options=NO_OPTIONS)
        return encode(record._replace(callback=callback))

    patch.setattr("queueber.engine.records.callbacks.encode_callback", without)


def deny_that_an_item_was_cancelled_by_its_key(patch: Patch) -> None:
    def denied(tx: QueueTx, key: str) -> bool:
        cancel_key(tx, key)
        return False

    patch.setattr("queueber.service.items.cancel_key", denied)


FLOW_BUGS: tuple[Bug, ...] = (
    deny_that_an_item_was_cancelled_by_its_key,
    store_nothing_of_what_the_item_of_a_callback_has_of_its_own,
    let_go_at_the_first_end,
    note_no_end_of_items_that_are_removed,
    note_in_a_second_write_that_an_item_was_called_back,
    remember_in_memory_alone_which_callbacks_are_due,
    call_back_without_a_look_at_the_batch,
)
