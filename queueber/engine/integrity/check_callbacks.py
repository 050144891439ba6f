"""The check of callbacks: each has a batch, and is due exactly when its item is to be added (I24);
and their repair."""

from collections import Counter
from collections.abc import Iterator, Mapping

from queueber.db.families import Family
from queueber.db.records.callbacks import (
    CallbackRecord,
    callback_key,
    decode_callback,
    due_key,
    number_of,
)
from queueber.db.records.queues import Counters
from queueber.db.records.remembered import BatchRecord, batch_number_part, decode_batch
from queueber.engine.integrity.queue_entries import (
    CheckedQueue,
    QueueEntries,
    QueueWrites,
    Violation,
    readable,
)
from queueber.limits import ID_BYTES


def check_callbacks(queue: CheckedQueue) -> Iterator[Violation]:
    """I24. Of a queue without callbacks it reads nothing but where they would be."""
    entries, counters = queue.entries, queue.counters
    expected: dict[int, str] = {}
    empty: set[int] = set()
    """Of batches without items a callback is due only if a load has ended."""
    records = waiting = 0
    for key, value in entries.walk(Family.CALLBACKS):
        number = number_of(key)
        if key == due_key(number):  # after all records
            if expected.pop(number, "") != value.decode():
                yield queue.broken("I24", f"the callback of batch {number} must not be due")
            continue
        record, stored = _read(key, value), entries.get(Family.BATCHES, batch_number_part(number))
        records += 1
        waiting += not record.item_id
        if stored is None:
            yield queue.broken("I24", f"a callback belongs to batch {number}, which does not exist")
        elif to := _due_to(record, batch := decode_batch(stored)):
            expected[number] = to
            if not batch.added:
                empty.add(number)
    for number in expected.keys() - empty:
        yield queue.broken("I24", f"the callback of batch {number} must be due")
    if (records, waiting) != (counters.callback_records, counters.callbacks):
        counted = f"{counters.callback_records} and {counters.callbacks}"
        text = f"{records} callbacks, of which {waiting} wait, but {counted} are counted"
        yield queue.broken("I24", text)


def rebuild_callbacks(
    entries: QueueEntries, batches: Mapping[int, BatchRecord], counters: Counters
) -> Counter[str]:
    """Keep callbacks that can be read and have a batch. What was lost, and how often."""
    lost: Counter[str] = Counter()
    writes = QueueWrites(entries)
    counters.callback_records = counters.callbacks = 0
    for key, value in entries.walk(Family.CALLBACKS):
        number = number_of(key)
        if key == due_key(number):
            writes.delete(Family.CALLBACKS, key)
            continue
        record, batch = readable(_read, key, value), batches.get(number)
        if record is None or batch is None:
            writes.delete(Family.CALLBACKS, key)
            lost["callbacks: nothing is added when their batch is complete"] += 1
            continue
        counters.callback_records += 1
        counters.callbacks += not record.item_id
    writes.flush()
    for key, value in entries.walk(Family.CALLBACKS):
        number = number_of(key)
        if batches[number].added and (to := _due_to(decode_callback(value), batches[number])):
            writes.put(Family.CALLBACKS, due_key(number), to.encode())
    writes.flush()
    return lost


def _due_to(record: CallbackRecord, batch: BatchRecord) -> str:
    """The queue that is to get the item now, or may be; empty: none."""
    return record.callback.to if not record.item_id and batch.has_ended else ""


def _read(key: bytes, value: bytes) -> CallbackRecord:
    """Raises if a part of it is wrong."""
    record = decode_callback(value)
    if key != callback_key(number_of(key)) or len(record.item_id) not in (0, ID_BYTES):
        raise ValueError(f"{key.hex()} is no callback")
    return record
